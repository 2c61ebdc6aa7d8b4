"""Files of 64 MB at two servers, by the mount and by fsspec, beside memcpy of as much."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import fsspec
import numpy as np
from turns import Seconds, Ways, in_turns, timed

from rdmacoll import ps

BYTES = 64 << 20
CALL_BYTES = 4 << 20  # of a program's read or write
LITTLE_BYTES = 4096
LITTLE_READS = 200


def files(_kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    folder = Path(os.environ["RDMACOLL_MOUNT"])
    source = np.random.default_rng(0).integers(0, 256, BYTES, dtype=np.uint8)
    out = np.zeros_like(source)
    memcpy = timed(lambda: np.copyto(out, source))
    mounted = folder / "mounted"
    write(mounted, source)
    reader = os.open(mounted, os.O_RDONLY)
    mapped = np.memmap(folder / ".mmap" / "mounted", mode="r")
    at_rdma = "rdma://by fsspec"
    write_at(at_rdma, source)
    ways: Ways = {
        "mount, read": timed(partial(read, reader, out)),
        "mount, write": partial(write, mounted, source),
        "mount, write and close": timed(partial(write, mounted, source)),
        ".mmap, mapped first": partial(map_first, folder, source, out),
        ".mmap, read again": timed(lambda: np.copyto(out, mapped)),
        "fsspec, readinto": timed(partial(read_at, at_rdma, out)),
        "fsspec, write": timed(partial(write_at, at_rdma, source)),
        "memcpy": memcpy,
    }
    cases = {name: in_turns(rounds, {"files": way, "memcpy": memcpy}) for name, way in ways.items()}
    little = timed(partial(read_little, reader))
    cases[f"mount, {LITTLE_READS} reads of 4 KB"] = in_turns(rounds, {"files": little})
    if not (out == source).all():
        raise SystemExit("what was read is not what was written")
    return cases


def write(path: Path, data: np.ndarray) -> float:
    """Returns the seconds before it was closed."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    began, left = time.perf_counter(), data.data
    while left:
        left = left[os.write(file, left[:CALL_BYTES]) :]
    took = time.perf_counter() - began
    os.close(file)
    return took


def read(file: int, out: np.ndarray) -> None:
    into, at = out.data, 0
    while at < BYTES:
        at += os.preadv(file, [into[at : at + CALL_BYTES]], at)


def map_first(folder: Path, data: np.ndarray, out: np.ndarray) -> float:
    """A version that nobody has read; the seconds without those to write it."""
    write(folder / "new", data)
    began = time.perf_counter()
    np.copyto(out, np.memmap(folder / ".mmap" / "new", mode="r"))
    return time.perf_counter() - began


def read_little(file: int) -> None:
    into = bytearray(LITTLE_BYTES)
    for number in range(LITTLE_READS):
        os.preadv(file, [into], number * 7 * LITTLE_BYTES % BYTES)


def write_at(path: str, data: np.ndarray) -> None:
    with fsspec.open(path, "wb") as file:
        file.write(data.data)


def read_at(path: str, out: np.ndarray) -> None:
    with fsspec.open(path, "rb") as file:
        file.readinto(out.data)
