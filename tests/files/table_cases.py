"""Tables of a job as files of rdma://, by two ranks with two servers.

Floor: tests.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import fsspec
import numpy as np
import pytest
import torch
import torch.distributed as dist

from rdmacoll import ps
from rdmacoll.files.filesystem import RdmaFileSystem

SHAPE = (3, 100_003)  # of two shards


def files() -> RdmaFileSystem:
    fs = fsspec.filesystem("rdma")
    assert isinstance(fs, RdmaFileSystem)
    return fs


def load(path: str) -> np.ndarray:
    with fsspec.open(path, "rb") as file:
        found = np.load(file)
    assert isinstance(found, np.ndarray)
    return found


def case_a_table_is_read_as_a_file(kv: ps.KV) -> None:
    values = torch.arange(float(3 * 100_003)).view(SHAPE)
    kv.init("read", values)
    path = "rdma://.tables/read.npy"
    assert np.array_equal(load(path), values.numpy())
    dist.barrier()
    with fsspec.open(path, "rb") as opened:
        if dist.get_rank() == 0:
            kv.push("read", torch.ones(SHAPE)).wait()
        dist.barrier()
        changed = np.load(opened)  # it is what servers have when it is read
    assert np.array_equal(changed, (values + 1).numpy())
    fs, whole = files(), load(path)
    data = fs.cat_file(path)
    assert data[-whole.nbytes :] == whole.tobytes() and fs.info(path)["size"] == len(data)
    for first, end in (0, 10), (7, 300), (127, 129), (128, 133), (len(data) - 5, len(data)):
        assert fs.cat_file(path, first, end) == data[first:end]
    about = fs.info(path)
    assert (about["dtype"], about["shape"], about["type"]) == ("float32", SHAPE, "file")


def case_names_of_tables(kv: ps.KV) -> None:
    for name in "a/b", "100%", "%2F", "..", "ä ö", "x.npy":
        kv.init(name, torch.full((2,), float(len(name))))
    kv.init("one number", torch.tensor(5.0))
    kv.init_rows("of rows", dim=3)
    expected = {
        "a%2Fb.npy": 3.0,
        "100%25.npy": 4.0,
        "%252F.npy": 3.0,
        "...npy": 2.0,
        "ä ö.npy": 3.0,
        "x.npy.npy": 5.0,
    }
    fs = files()
    dist.barrier()
    listed = {path.rpartition("/")[2] for path in fs.ls(".tables", detail=False)}
    assert listed.issuperset({*expected, "one number.npy"})
    assert not any("of rows" in name for name in listed)
    for name, value in expected.items():
        assert load(f"rdma://.tables/{name}").tolist() == [value, value], name
    assert load("rdma://.tables/one number.npy").tolist() == 5.0
    for name in "a/b.npy", "%2F.npy", "100%.npy", "a%2Fb", "none.npy", "\udcff.npy", "of rows.npy":
        assert not fs.exists(f".tables/{name}"), name
    assert ".tables" not in fs.ls("", detail=False) and fs.isdir(".tables")


def case_nobody_writes_them(kv: ps.KV) -> None:
    kv.init("kept", torch.ones(3))
    fs, path = files(), ".tables/kept.npy"
    fs.pipe_file("a file", b"of mine")
    wrong: list[Callable[[], Any]] = [
        *(lambda mode=mode: fs.open(path, mode).close() for mode in ("wb", "ab", "xb", "r+b")),
        lambda: fs.pipe_file(".tables/new.npy", b""),
        lambda: fs.rm_file(path),
        lambda: fs.mv(path, "moved.npy"),
        lambda: fs.mv("a file", path),
        lambda: fs.mv("a file", ".tables"),
        lambda: fs.mv(".tables", "moved"),
        lambda: fs.rmdir(".tables"),
        lambda: fs.mkdir(".tables/folder"),
    ]
    for number, does in enumerate(wrong):
        with pytest.raises(OSError) as raised:
            does()
        assert raised.value.errno in (errno.EROFS, errno.EEXIST, errno.EISDIR), (number, raised)
    assert load(f"rdma://{path}").tolist() == [1.0] * 3
    assert fs.cat_file("a file") == b"of mine"
    fs.cp_file(path, "copied.npy")
    assert load("rdma://copied.npy").tolist() == [1.0] * 3


def case_one_that_is_dropped(kv: ps.KV) -> None:
    name = f"dropped {dist.get_rank()}"
    kv.init(name, torch.ones(3))
    fs = files()
    file = fs.open(f".tables/{name}.npy", "rb")
    kv.drop(name)
    with pytest.raises(OSError) as raised:
        file.read()
    assert raised.value.errno == errno.ESTALE
    assert not fs.exists(f".tables/{name}.npy")
    kv.init(name, torch.zeros(2, 2))
    assert load(f"rdma://.tables/{name}.npy").tolist() == [[0.0, 0.0], [0.0, 0.0]]
