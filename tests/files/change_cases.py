"""Files of rdma:// that are changed within (r+b), and one whose process forks, by two ranks.

Floor: tests.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from file_cases import PART_BYTES, SEED, files, some_bytes

from rdmacoll import ps


def some_change(file: Any, drawn: random.Random) -> Any:
    """Of a file that is open to be changed; what it returns."""
    kind, at = drawn.randrange(5), drawn.randrange(50_000)
    count = drawn.choice((0, 1, 3, 4, 100, 4097, 30_000))
    if kind == 0:
        return file.truncate(at)
    if kind == 1:
        return file.seek(0, os.SEEK_END), file.write(drawn.randbytes(count))
    file.seek(at)
    return file.read(count) if kind == 2 else file.write(drawn.randbytes(count))


def case_a_file_is_changed_as_a_local_one(_kv: ps.KV) -> None:
    fs, own = files(), f"changed/{dist.get_rank()}"
    fs.pipe_file(own, some_bytes(20_000))
    with tempfile.NamedTemporaryFile() as local:
        local.write(some_bytes(20_000))
        local.flush()
        for number in range(40):
            before = fs.cat_file(own)
            with fs.open(own, "r+b") as ours, open(local.name, "r+b") as theirs:
                for step in range(25):
                    seed = f"{SEED} {dist.get_rank()} {number} {step}"
                    found = some_change(ours, random.Random(seed))
                    assert found == some_change(theirs, random.Random(seed)), seed
                assert ours.tell() == theirs.tell() and fs.cat_file(own) == before
            assert fs.cat_file(own) == Path(local.name).read_bytes(), number


def case_a_large_file_is_changed_within(_kv: ps.KV) -> None:
    """What stays as it was is kept, also when somebody replaces the file meanwhile."""
    fs, own = files(), f"changed within {dist.get_rank()}"
    data = bytearray(some_bytes(3 * PART_BYTES + 5))
    fs.pipe_file(own, data)
    before = fs._file((own,)).parts
    with fs.open(own, "r+b") as file:
        file.seek(PART_BYTES + 7)
        file.write(b"changed")
        fs.pipe_file(own, b"of another")
        time.sleep(1.0)  # what nobody has open is freed by then
    data[PART_BYTES + 7 : PART_BYTES + 14] = b"changed"
    assert fs.cat_file(own) == data
    kept = [a == b for a, b in zip(before, fs._file((own,)).parts, strict=True)]
    assert kept == [True, False, True, True]
    with fs.open(own, "r+b") as file:
        assert file.read(10) == data[:10]
        for wrong in (lambda: file.truncate(-1), lambda: file.seek(-1)):
            with pytest.raises(ValueError, match="-1"):
                wrong()
    with pytest.raises(ZeroDivisionError), fs.open(own, "r+b") as file:
        file.write(b"never")
        raise ZeroDivisionError
    with fs.transaction, fs.open(own, "r+b") as file:
        file.write(b"at the end of it")
        assert fs.cat_file(own) == data
    assert fs.cat_file(own) == b"at the end of it" + data[16:]


def case_the_user_gives_up_as_it_gets_its_name(_kv: ps.KV) -> None:
    """The name has either version then, and all of it."""
    fs, own = files(), f"given up {dist.get_rank()}"
    for step in "put", "_named":
        fs.pipe_file(own, some_bytes(5000, 1))
        of = fs._folders if step == "put" else fs._holds
        done = getattr(of, step)

        def give_up(*arguments: Any, done: Any = done, **options: Any) -> None:
            done(*arguments, **options)
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(of, step, give_up)
            fs.pipe_file(own, some_bytes(5000, 2))
        time.sleep(1.5)  # what nobody needs is freed by then
        assert fs.cat_file(own) == some_bytes(5000, 2), step


def case_a_forked_child_leaves_it_alone(_kv: ps.KV) -> None:
    fs, own = files(), f"forked {dist.get_rank()}"
    data = some_bytes(2 * PART_BYTES)
    with fs.open(own, "wb") as file:
        file.write(data)
        child = os.fork()
        if child == 0:
            with pytest.raises(RuntimeError, match="forked"):
                file.close()
            del file
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert fs.cat_file(own) == data
