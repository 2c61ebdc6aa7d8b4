"""What programs that know files do at both faces, by two ranks of a job whose files are mounted.
They name rdma:// or a path, and know nothing else of the job.

Floor: tests. Thread: the ranks'.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors import safe_open
from safetensors.torch import load, load_file, save, save_file
from test_mount import fails_with
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader

from rdmacoll import ps

MOUNTED = Path(os.environ.get("RDMACOLL_MOUNT", ""))
SHARED = MOUNTED / ".mmap"
ROWS = 3000


def new_folder(name: str) -> str:
    """Of both ranks; as a path within either face."""
    if dist.get_rank() == 0:
        (MOUNTED / name).mkdir()
    dist.barrier()
    return name


def faces(name: str) -> list[str]:
    return [f"{MOUNTED}/{name}", f"rdma://{name}"]


def table(rank: int) -> pd.DataFrame:
    drawn = np.random.default_rng(rank)
    numbers = drawn.integers(-1000, 1000, ROWS)
    words = [f'row "{n}", of {rank}\nü' for n in range(ROWS)]
    return pd.DataFrame({"number": numbers, "value": drawn.random(ROWS), "word": words})


def tensors(rank: int) -> dict[str, torch.Tensor]:
    drawn = torch.Generator().manual_seed(rank)
    weights = torch.randn(300, 701, generator=drawn)
    return {"weights": weights, "half": weights.bfloat16(), "step": torch.tensor(rank)}


def assert_same(found: dict[str, torch.Tensor], rank: int) -> None:
    wanted = tensors(rank)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def case_pandas(_kv: ps.KV) -> None:
    """Each rank writes by either face, and reads by both what the other one has written."""
    inside, rank = new_folder("pandas"), dist.get_rank()
    own = table(rank)
    for number, face in enumerate(faces(inside)):
        path = f"{face}/{rank}.{number}"
        own.to_csv(f"{path}.csv", index=False)
        own.to_csv(f"{path}.csv", index=False, mode="a", header=False)
        own.to_csv(f"{path}.csv.gz", index=False)
        own.to_json(f"{path}.json", orient="records", lines=True)
        own.to_pickle(f"{path}.pickle")
    dist.barrier()
    theirs = table(1 - rank)
    for face in faces(inside):
        for number in range(2):
            path = f"{face}/{1 - rank}.{number}"
            twice = pd.concat([theirs, theirs], ignore_index=True)
            pd.testing.assert_frame_equal(pd.read_csv(f"{path}.csv"), twice)
            parts = list(pd.read_csv(f"{path}.csv", chunksize=ROWS // 7))
            pd.testing.assert_frame_equal(pd.concat(parts), twice)
            pd.testing.assert_frame_equal(pd.read_csv(f"{path}.csv.gz"), theirs)
            pd.testing.assert_frame_equal(pd.read_pickle(f"{path}.pickle"), theirs)
            lines = pd.read_json(f"{path}.json", orient="records", lines=True)
            pd.testing.assert_frame_equal(lines, theirs)


def case_pandas_maps_a_file(_kv: ps.KV) -> None:
    inside, rank = new_folder("pandas maps"), dist.get_rank()
    path = f"{inside}/{rank}.csv"
    table(rank).to_csv(MOUNTED / path, index=False)
    mapped = pd.read_csv(SHARED / path, memory_map=True)
    pd.testing.assert_frame_equal(mapped, table(rank))
    with fails_with(errno.ENODEV):
        pd.read_csv(MOUNTED / path, memory_map=True)


def case_safetensors_by_path(_kv: ps.KV) -> None:
    inside, rank = new_folder("safetensors"), dist.get_rank()
    for _ in range(2):  # the second one takes the place of the first
        save_file(tensors(rank), MOUNTED / inside / f"{rank}.safetensors", {"by": str(rank)})
    dist.barrier()
    other = 1 - rank
    for folder in MOUNTED, SHARED:
        path = folder / inside / f"{other}.safetensors"
        assert_same(load_file(path), other)
        with safe_open(path, "pt") as file:
            assert file.metadata() == {"by": str(other)}
            part = file.get_slice("weights")[7:11, 5:]
        assert torch.equal(part, tensors(other)["weights"][7:11, 5:])
    with fails_with(errno.EROFS):
        (SHARED / inside / "new.safetensors").write_bytes(save(tensors(rank)))


def case_safetensors_by_fsspec(_kv: ps.KV) -> None:
    inside, rank = new_folder("safetensors by fsspec"), dist.get_rank()
    with fsspec.open(f"rdma://{inside}/{rank}", "wb") as file:
        file.write(save(tensors(rank)))
    dist.barrier()
    other = 1 - rank
    with fsspec.open(f"rdma://{inside}/{other}", "rb") as file:
        assert_same(load(file.read()), other)
    assert_same(load_file(SHARED / inside / str(other)), other)


def case_memmap(_kv: ps.KV) -> None:
    inside, rank = new_folder("memmap"), dist.get_rank()
    path, values = f"{inside}/{rank}", np.arange(100_000, dtype=np.int32)
    values.tofile(MOUNTED / path)
    mapped = np.memmap(SHARED / path, np.int32, "r", offset=4)
    assert np.array_equal(mapped, values[1:])
    with fails_with(errno.EROFS):
        np.memmap(SHARED / path, np.int32, "r+")
    with fails_with(errno.EROFS):
        np.memmap(SHARED / path, np.int32, "w+", shape=5)
    with fails_with(errno.ENODEV):
        np.memmap(MOUNTED / path, np.int32, "r")
    with fails_with(errno.ENODEV):
        np.memmap(MOUNTED / path, np.int32, "r+")
    for folder in MOUNTED, SHARED:  # a copy of what is there can be had in either
        copy = np.memmap(folder / path, np.int32, "c")
        copy[:] += 1
        assert np.array_equal(copy, values + 1)
    assert np.array_equal(np.fromfile(MOUNTED / path, np.int32), values)


def case_torch_maps_a_file(_kv: ps.KV) -> None:
    """What is mapped stays as it was, also once another version is there, or none."""
    inside, rank = new_folder("torch maps"), dist.get_rank()
    path = MOUNTED / inside / f"{rank}.pt"
    torch.save(tensors(rank), path)
    loaded = [torch.load(one, mmap=True) for one in (path, SHARED / inside / path.name)]
    torch.save(tensors(5), path)
    assert_same(torch.load(SHARED / inside / path.name, mmap=True), 5)
    path.unlink()
    for one in loaded:
        assert_same(one, rank)


def case_a_checkpoint_by_path(_kv: ps.KV) -> None:
    """The second one is read by the other face, too."""
    inside, rank = new_folder("checkpoint"), dist.get_rank()
    for number in range(2):
        own = torch.full((100_000,), float(10 * number + rank))
        state = {f"of rank {rank}": own, "of all": torch.arange(10.0) + number}
        dcp.save(state, storage_writer=FileSystemWriter(MOUNTED / inside, overwrite=True))
    for reader in FileSystemReader(MOUNTED / inside), FsspecReader(f"rdma://{inside}"):
        found = {f"of rank {one}": torch.zeros(100_000) for one in range(2)}
        found["of all"] = torch.zeros(10)
        dcp.load(found, storage_reader=reader)
        assert [found[f"of rank {one}"].unique().tolist() for one in range(2)] == [[10.0], [11.0]]
        assert torch.equal(found["of all"], torch.arange(10.0) + 1)


def case_a_snapshot_by_path(kv: ps.KV) -> None:
    """It goes to the servers whose tables it is of, and comes back from there."""
    path, ids = MOUNTED / "snapshot", torch.arange(-5, 5)
    kv.init("dense", torch.arange(300_000.0), optimizer=ps.SGD(lr=0.5, momentum=0.5))
    kv.init_rows("rows", dim=3)
    names = ["dense", "rows"]

    def push(ids: torch.Tensor) -> None:
        """Both ranks, one after the other, so that bits are determined."""
        for rank in range(2):
            if dist.get_rank() == rank:
                rows = torch.ones(len(ids), 3)
                kv.wait(kv.push("dense", torch.ones(300_000)), kv.row_push("rows", ids, rows))
            dist.barrier()

    push(ids)
    ps.snapshot(path, names)
    push(ids)
    twice = kv.pull("dense"), kv.row_pull("rows", ids)
    assert twice[1].unique().tolist() == [4.0]
    dist.barrier()  # the next push is to some of the same rows
    push(ids + 5)
    ps.restore(path, names)
    assert kv.row_pull("rows", ids).unique().tolist() == [2.0]
    assert kv.row_pull("rows", torch.arange(5, 10)).unique().tolist() == [0.0]
    dist.barrier()
    push(ids)  # with the momentum that was there then
    assert torch.equal(kv.pull("dense"), twice[0])
    assert torch.equal(kv.row_pull("rows", ids), twice[1])
    with pytest.raises(FileExistsError):
        ps.snapshot(path, names)
    left = sorted(one.name for one in MOUNTED.iterdir() if one.name.startswith("snapshot"))
    assert left == ["snapshot"]
