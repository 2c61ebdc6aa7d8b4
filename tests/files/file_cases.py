"""Files of rdma://, by two ranks of a job with two servers.

Floor: tests.
"""

from __future__ import annotations

import errno
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from fsspec.implementations.local import LocalFileSystem

from rdmacoll import ps
from rdmacoll.files.entry import File
from rdmacoll.files.filesystem import RdmaFileSystem

PART_BYTES = 16 << 20  # as csrc/files/part.h has it
SIZES = (0, 1, 3, 4, 5, 1 << 20, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 5)
SEED = 20


def files() -> RdmaFileSystem:
    fs = fsspec.filesystem("rdma")
    assert isinstance(fs, RdmaFileSystem)
    return fs


def some_bytes(size: int, seed: int = SEED) -> bytes:
    return np.random.default_rng(seed).bytes(size)


def case_a_file_is_the_same_for_all(_kv: ps.KV) -> None:
    fs = files()
    for size in SIZES:
        if dist.get_rank() == 0:
            fs.pipe_file(f"same/{size}", some_bytes(size))
        dist.barrier()
        assert fs.cat_file(f"same/{size}") == some_bytes(size)
        assert fs.info(f"rdma://same/{size}")["size"] == size
    assert fs.ls("same", detail=False) == sorted(f"same/{size}" for size in SIZES)


def case_ranges_of_any_bytes(_kv: ps.KV) -> None:
    fs, own = files(), f"ranges {dist.get_rank()}"
    data = some_bytes(PART_BYTES + 1000)
    fs.pipe_file(own, data)
    drawn = random.Random(SEED)
    near = [0, 1, 5, PART_BYTES - 3, PART_BYTES, PART_BYTES + 2, len(data)]
    with fs.open(own, "rb") as file:
        for _ in range(200):
            first = drawn.choice(near) + drawn.randrange(-3, 4)
            first = min(max(first, 0), len(data))
            count = drawn.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 4096, 2_000_000))
            assert fs.cat_file(own, first, first + count) == data[first : first + count]
            file.seek(first)
            room = bytearray(count + 3)
            into = memoryview(room)[drawn.randrange(4) :][:count]
            file.readinto(into)
            found = data[first : first + count]
            assert into[: len(found)] == found
    assert fs.cat_file(own, -7) == data[-7:] and fs.cat_file(own, 5, -5) == data[5:-5]
    assert fs.tail(own, 10) == data[-10:] and fs.head(own, 10) == data[:10]


def case_many_small_writes_and_lines(_kv: ps.KV) -> None:
    own = f"rdma://lines/{dist.get_rank()}.txt"
    with fsspec.open(own, "w") as file:
        for number in range(1000):
            file.write(f"line {number}\n")
    with fsspec.open(own, "a") as file:
        file.write("the end")
    with fsspec.open(own, "r") as file:
        assert [line.strip() for line in file] == [f"line {n}" for n in range(1000)] + ["the end"]


Does = Callable[[Any, str], Any]  # with a file system, in a folder of it


def outcome(does: Does, fs: Any, folder: str) -> Any:
    """What it returns, or the kind of its error."""
    try:
        return does(fs, folder)
    except OSError as error:
        return type(error)


def write(fs: Any, path: str, mode: str, data: bytes) -> None:
    if fs.isdir(os.path.dirname(path)):  # a local file system makes no folders
        with fs.open(path, mode) as file:
            file.write(data)


def some_operation(fs: RdmaFileSystem, own: str, drawn: random.Random) -> Does:
    names = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a"]
    name, other = drawn.choice(names), drawn.choice(names)
    data = drawn.randbytes(drawn.choice((0, 1, 7, 1000)))
    operations: list[Does] = [
        lambda fs, at: write(fs, f"{at}/{name}", "wb", data),
        lambda fs, at: write(fs, f"{at}/{name}", "wb", data),
        lambda fs, at: write(fs, f"{at}/{name}", "ab", data),
        lambda fs, at: fs.rm_file(f"{at}/{name}"),
        lambda fs, at: fs.mkdir(f"{at}/{name}", create_parents=False),
        lambda fs, at: fs.rmdir(f"{at}/{name}"),
        lambda fs, at: fs.cat_file(f"{at}/{name}"),
    ]
    if may_move(fs, f"{own}/{name}", f"{own}/{other}"):
        operations += [lambda fs, at: fs.mv(f"{at}/{name}", f"{at}/{other}")] * 3
    return drawn.choice(operations)


def case_random_operations_end_as_in_a_local_folder(_kv: ps.KV) -> None:
    """Names and bytes; what fails there fails here."""
    fs, local, drawn = files(), LocalFileSystem(), random.Random(SEED + dist.get_rank())
    own = f"random/{dist.get_rank()}"
    fs.makedirs(own)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(400):
            does = some_operation(fs, own, drawn)
            ours, theirs = outcome(does, fs, own), outcome(does, local, folder)
            assert ours == theirs, (number, ours, theirs)
            assert tree_of(fs, own) == tree_of(local, folder), number


def may_move(fs: RdmaFileSystem, old: str, new: str) -> bool:
    """Into another folder a local file system moves it, and makes none."""
    return fs.isfile(old) and fs.isdir(os.path.dirname(new)) and not fs.isdir(new)


def tree_of(fs: Any, at: str) -> dict[str, bytes | None]:
    return {
        os.path.relpath(path, at): None if fs.isdir(path) else fs.cat_file(path)
        for path in fs.find(at, withdirs=True)
        if os.path.relpath(path, at) != "."
    }


def case_all_write_into_one_folder(_kv: ps.KV) -> None:
    fs, world = files(), dist.get_world_size()
    for number in range(30):
        fs.pipe_file(f"one folder/{dist.get_rank()}.{number}", b"%d" % number)
    dist.barrier()
    assert len(fs.ls("one folder")) == 30 * world
    dist.barrier()
    for number in range(30):
        fs.mv(f"one folder/{dist.get_rank()}.{number}", f"another/{number}.{dist.get_rank()}")
    dist.barrier()
    assert fs.ls("one folder") == [] and len(fs.ls("another")) == 30 * world
    assert all(fs.cat_file(f"another/{n}.{r}") == b"%d" % n for n in (0, 29) for r in range(world))


def case_one_of_all_makes_it(_kv: ps.KV) -> None:
    fs = files()
    made = []
    for number in range(20):
        dist.barrier()
        try:
            with fs.open(f"made once {number}", "xb") as file:
                file.write(b"%d" % dist.get_rank())
            made.append(number)
        except FileExistsError:
            pass
    counts = torch.tensor([float(number in made) for number in range(20)])
    dist.all_reduce(counts)
    assert counts.tolist() == [1.0] * 20
    assert all(fs.cat_file(f"made once {number}") == b"%d" % dist.get_rank() for number in made)


def case_a_version_is_read_as_a_whole(_kv: ps.KV) -> None:
    """By who has it open, also when it is replaced; others see another one once it is closed."""
    fs, own = files(), f"versions {dist.get_rank()}"
    before, after = some_bytes(3 << 20, 1), some_bytes(3 << 20, 2)
    fs.pipe_file(own, before)
    with fs.open(own, "rb") as file:
        assert file.read(10) == before[:10]
        with fs.open(own, "wb") as writer:
            writer.write(after[:100])
            assert fs.cat_file(own) == before
            writer.write(after[100:])
        assert fs.cat_file(own) == after
        assert file.read() == before[10:]


def case_who_has_it_open_keeps_its_version(_kv: ps.KV) -> None:
    """Whatever another process does to it; then it is freed."""
    fs, data = files(), some_bytes(PART_BYTES + 5)
    names = ["replaced", "removed", "moved over", "appended"]
    if dist.get_rank() == 0:
        for name in names:
            fs.pipe_file(f"held/{name}", data)
        opened = {name: fs.open(f"held/{name}", "rb") for name in names}
        versions = {name: fs._file(("held", name)) for name in names}
    dist.barrier()
    if dist.get_rank() == 1:
        fs.pipe_file("held/replaced", b"another")
        fs.rm_file("held/removed")
        fs.mv("held/replaced", "held/moved over")
        with fs.open("held/appended", "ab") as file:
            file.write(b"more")
        fs.rm_file("held/appended")
    dist.barrier()
    if dist.get_rank() == 0:
        time.sleep(1.0)  # what nobody has open is freed by then
        assert fs.cat_file("held/moved over") == b"another"
        for name in names:
            assert opened[name].read() == data, name
        opened.pop("replaced").close()
        del opened  # who forgets to close it leaves nothing either
        for version in versions.values():
            until_gone(fs, version)
        with pytest.MonkeyPatch.context() as patch:  # it is replaced just before it is read
            patch.setattr(fs, "_file", lambda _: versions["moved over"])
            assert fs.cat_file("held/moved over") == b"another"


def until_gone(fs: RdmaFileSystem, version: File) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            fs._read(version, 0, 1)
        except OSError as error:
            assert error.errno == errno.ESTALE, error
            return
        assert time.monotonic() < deadline, "a version that nobody has open is still there"
        time.sleep(0.05)


def case_appends_of_all_are_there(_kv: ps.KV) -> None:
    fs, world = files(), dist.get_world_size()
    dist.barrier()
    for number in range(20):
        with fs.open("appended", "a") as file:
            file.write(f"{dist.get_rank()}.{number}\n")
    dist.barrier()
    with fs.open("appended", "r") as file:
        lines = file.read().split()
    assert sorted(lines) == sorted(f"{r}.{n}" for r in range(world) for n in range(20))


def case_transactions(_kv: ps.KV) -> None:
    fs, own = files(), f"transactions {dist.get_rank()}"
    fs.pipe_file(f"{own}/kept", b"as it was")

    def write(text: bytes) -> None:
        with fs.open(f"{own}/kept", "wb") as file:
            file.write(text)
        with fs.open(f"{own}/more", "wb") as file:
            file.write(text)
        assert fs.cat_file(f"{own}/kept") == b"as it was"

    with pytest.raises(ZeroDivisionError), fs.transaction:
        write(b"never")
        raise ZeroDivisionError
    assert fs.ls(own, detail=False) == [f"{own}/kept"]
    with fs.transaction:
        write(b"as it is")
    assert fs.cat(own + "/*") == {f"{own}/{name}": b"as it is" for name in ("kept", "more")}


def case_what_fails_leaves_nothing(_kv: ps.KV) -> None:
    fs, own = files(), f"fails {dist.get_rank()}"
    with pytest.raises(ZeroDivisionError), fs.open(own, "wb") as file:
        file.write(some_bytes(PART_BYTES))
        raise ZeroDivisionError
    assert not fs.exists(own)
    with pytest.raises(ValueError, match="closed file"):
        file.write(b"more")
    with pytest.raises(ValueError, match="mode='w\\+b'; give rb, r\\+b, wb, ab or xb"):
        fs.open(own, "w+b")
    for mode in "rb", "r+b":
        with pytest.raises(FileNotFoundError):
            fs.open(own, mode)
    fs.mkdir(own)
    for wrong in lambda: fs.open(own, "rb"), lambda: fs.pipe_file(own, b""):
        with pytest.raises(IsADirectoryError):
            wrong()
    fs.pipe_file(f"{own}/file", b"")
    for beyond in (
        lambda: fs.pipe_file(f"{own}/file/below", b""),
        lambda: fs.makedirs(f"{own}/file/below"),
    ):
        with pytest.raises(NotADirectoryError):
            beyond()
    for cannot in lambda: fs.mv(own, f"{own}/inside/itself"), lambda: fs.rmdir(own):
        with pytest.raises(OSError):
            cannot()
    assert fs.cat_file(f"{own}/file") == b""


def case_what_knows_files_works(_kv: ps.KV) -> None:
    fs, rank = files(), dist.get_rank()
    own = f"rdma://known/{rank}"
    state: dict[str, Any] = {"weights": torch.randn(300, 7), "step": 5}
    with fsspec.open(f"{own}/model.pt", "wb") as file:
        torch.save(state, file)
    with fsspec.open(f"{own}/model.pt", "rb") as file:
        loaded = torch.load(file)
    assert torch.equal(loaded["weights"], state["weights"]) and loaded["step"] == 5
    with fsspec.open(f"{own}/array.npy", "wb") as file:
        np.save(file, np.arange(1000))
    with fsspec.open(f"{own}/array.npy", "rb") as file:
        assert np.array_equal(np.load(file), np.arange(1000))
    with fsspec.open(f"{own}/text.gz", "wt", compression="gzip") as file:
        file.write("compressed")
    with fsspec.open(f"{own}/text.gz", "rt", compression="gzip") as file:
        assert file.read() == "compressed"
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, "local")
        local.write_bytes(some_bytes(5000))
        fs.put_file(str(local), f"{own}/put")
        fs.get_file(f"{own}/put", f"{folder}/back")
        assert Path(folder, "back").read_bytes() == some_bytes(5000)


def case_torchs_checkpoints(_kv: ps.KV) -> None:
    """Each rank writes its part, and reads all of it."""
    from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter

    state = {f"of rank {dist.get_rank()}": torch.randn(1000), "of all": torch.arange(10.0)}
    dcp.save(state, storage_writer=FsspecWriter("rdma://checkpoints/1"))
    found = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    dcp.load(found, storage_reader=FsspecReader("rdma://checkpoints/1"))
    assert all(torch.equal(found[name], state[name]) for name in state)
