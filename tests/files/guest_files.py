"""What guests of test_guest_files.py do with fsspec: `guest_files.py WHAT STORE ...`.

They are no ranks, and name the job's Store. They tell the test how far they are in files of the
folder that they run in. Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import torch

from rdmacoll import ps

TIMEOUT_S = 3.0
LIMIT_S = 50.0
SIZE = 40_000_000  # several parts, and more than what is fetched ahead
PIECE = 1 << 20


def content() -> bytes:
    return np.random.default_rng(21).bytes(SIZE)


def say(word: str, more: str = "") -> None:
    Path(f"{word}.new").write_text(more)
    Path(f"{word}.new").rename(word)


def wait_for_word(word: str) -> None:
    until = time.monotonic() + LIMIT_S
    while not Path(word).exists():
        if time.monotonic() > until:
            sys.exit(f"{word!r} has not come")
        time.sleep(0.01)


def refusal(call: Callable[[], object]) -> str:
    try:
        return f"not refused: {call()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def uses(store: str, name: str) -> None:
    """Its own files, and those of the guest before it."""
    own = f"rdma://by/{name}"
    with fsspec.open(f"{own}/bytes", "wb", store=store) as file:
        file.write(content())
    with fsspec.open(f"{own}/lines", "w", store=store) as file:
        file.writelines(f"line {number}\n" for number in range(1000))
    with fsspec.open(f"{own}/lines", "a", store=store) as file:
        file.write("the end")
    fs = fsspec.filesystem("rdma", store=store)
    sizes = {one["name"]: one["size"] for one in fs.ls(own)}
    assert sizes == {f"by/{name}/bytes": SIZE, f"by/{name}/lines": 8897}, sizes
    fs.mv(f"{own}/lines", f"{own}/moved")
    for other in fs.ls("by", detail=False):
        with fs.open(f"{other}/bytes", "rb") as file:
            file.seek(SIZE - 1000)
            assert file.read() == content()[-1000:]
            file.seek(0)
            assert file.read() == content()
        with fsspec.open(f"rdma://{other}/moved", "r", store=store) as file:
            assert file.readlines()[-2:] == ["line 999\n", "the end"]
    print(*fs.find("by"), flush=True)


def refused(store: str, *others: str) -> None:
    """others: where no such Store is. Then it comes to the right one, which has no such file."""

    def look(at: str, **options: Any) -> None:
        path = "rdma://some/file"
        print(refusal(lambda: fsspec.open(path, store=at, timeout=TIMEOUT_S, **options).open()))

    for other in others:
        look(other)
    look(store, rdzv_id="another")
    look(store, rdzv_id="none")


def reads(store: str) -> None:
    """A file that it has open, again and again, and another one as a whole; and writes some."""
    fs = fsspec.filesystem("rdma", store=store)
    wanted, count = content(), 0
    fs.pipe_file("read", wanted)
    fs.pipe_file("other", b"other" * 1000)
    with fs.open("read", "rb") as file:
        while not Path("enough").exists():
            first = file.seek(count * PIECE % SIZE)
            assert file.read(PIECE) == wanted[first : first + PIECE], first
            assert fs.cat_file("other") == b"other" * 1000
            fs.pipe_file(f"written/{count % 10}", wanted[:PIECE])
            count += 1
            say("servers", json.dumps([dataclasses.asdict(one) for one in ps.stats().servers]))
            say("count", str(count))
        file.seek(0)
        assert file.read() == wanted
    assert len(fs.ls("written")) == 10
    print("all is as it was", flush=True)


def outlives(store: str) -> None:
    """The job ends while it has files open."""
    fs = fsspec.filesystem("rdma", store=store, timeout=TIMEOUT_S)
    fs.pipe_file("read", content())
    reader, writer = fs.open("read", "rb"), fs.open("never", "wb")
    assert reader.read(10) == content()[:10]
    writer.write(b"never")
    say("open")
    wait_for_word("ended")
    for call in reader.read, writer.close, lambda: fs.ls(""), lambda: fs.pipe_file("new", b"x"):
        print(refusal(call), flush=True)
    reader.close()
    print("came to its end", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    roles: dict[str, Callable[..., None]] = {
        "uses": uses,
        "refused": refused,
        "reads": reads,
        "outlives": outlives,
    }
    roles[sys.argv[1]](*sys.argv[2:])
