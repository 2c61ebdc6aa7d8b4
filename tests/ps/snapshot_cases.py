"""What snapshots do in a job of two workers: refusals, a full disk, pushes that go on, and
what restore() changes.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from rdmacoll import ps

SHARD = 256 * 1024


def case_paths(kv: ps.KV) -> None:
    kv.init("paths", torch.ones(3))
    Path(f"taken.{dist.get_rank()}").touch()
    dist.barrier()
    with pytest.raises(FileExistsError, match="path='taken.0' exists; give each snapshot"):
        ps.snapshot("taken.0", ["paths"])
    with pytest.raises(FileNotFoundError, match="path='nowhere' is no snapshot"):
        ps.restore("nowhere", ["paths"])
    Path("taken.0.unfinished").mkdir(exist_ok=True)
    Path("taken.0.unfinished", "left by a job that has ended").touch()
    if dist.get_rank() == 0:
        Path("taken.0").unlink()
    dist.barrier()
    ps.snapshot(Path("taken.0"), ["paths"])
    assert not Path("taken.0.unfinished").exists()
    assert not Path("taken.0", "left by a job that has ended").exists()


def case_tables(kv: ps.KV) -> None:
    kv.init("known", torch.ones(3))
    names = "known"
    with pytest.raises(ValueError, match=r"tables=\['unknown'\]: this worker has made no such"):
        ps.snapshot("tables", ["known", "unknown"])
    with pytest.raises(TypeError, match=r"tables is a string; give a list of names: \['known'\]"):
        ps.snapshot("tables", names)
    with pytest.raises(ValueError, match="there are no tables"):
        ps.snapshot("tables", [])
    mine = f"of {dist.get_rank()}"
    kv.init(mine, torch.ones(3))
    with pytest.raises(ValueError, match=r"workers 0 and 1 .* \['of 0', 'of 1'\]"):
        ps.snapshot("tables", ["known", mine])
    kv.init("known.ids", torch.ones(3))
    kv.init_rows("rows", dim=3)
    kv.init("rows.ids", torch.ones(3))
    with pytest.raises(ValueError, match=r"two tables would have a tensor 'rows\.ids'"):
        ps.snapshot("tables", ["rows", "rows.ids"])
    dist.barrier()  # worker 0 takes away what it had begun
    assert not Path("tables").exists() and not Path("tables.unfinished").exists()
    one_fails = ["known"] if dist.get_rank() == 0 else ["nothing"]
    with pytest.raises(ValueError, match="'nothing'"):
        ps.snapshot("tables", one_fails)
    ps.snapshot("tables", ["known", "known.ids"])
    ps.restore("tables", ["known", "known.ids"])


def case_other_tables_than_were_taken(kv: ps.KV) -> None:
    """A snapshot's tables are those of its names in another job; here they are renamed instead."""
    kv.init("a", torch.ones(4), optimizer=ps.Adam())
    kv.init("b", torch.ones(4, 2), optimizer=ps.SGD(momentum=0.5))
    kv.init_rows("c", dim=2)
    ps.snapshot("other", ["a", "b", "c"])
    dist.barrier()
    saved = ps.worker.worker(10.0, None).tables
    of_job = dict(saved)
    forget_dropped = ps.worker.Worker.forget_dropped

    def refused(words: str, tables: list[str] | None = None) -> None:
        with pytest.raises(ValueError, match=words):
            ps.restore("other", tables)

    def named(**tables: str) -> None:
        saved.clear()
        saved.update({name: of_job[table] for name, table in tables.items()})

    # Those that are renamed would be taken for such as were dropped.
    ps.worker.Worker.forget_dropped = lambda self: None  # type: ignore[method-assign]
    try:
        named(a="a", b="b", c="c", d="a")
        refused("'d' is not in the snapshot")
        named(a="a")
        refused("'b' is in the snapshot, and was not made here; 'c' is in the snapshot")
        named(a="b", b="a", c="c")
        refused(r"'a' has another kind of optimizer.*'b' has another kind of optimizer")
        refused("momentum_buffer")
        named(a="c", b="b", c="c")
        refused("'a' has another kind of optimizer, or of table")
        kv.init("longer", torch.ones(5), optimizer=ps.Adam())
        kv.init("faster", torch.zeros(4), optimizer=ps.AdamW(lr=7.0))
        of_job = dict(saved) | of_job
        named(a="longer")
        refused(r"'a' is \(4,\) of torch.float32 there, and \(5,\) here", ["a"])
        named(a="faster")
        ps.restore("other", ["a"])
        assert torch.equal(kv.pull("faster"), torch.ones(4))
    finally:
        ps.worker.Worker.forget_dropped = forget_dropped  # type: ignore[method-assign]
        saved.clear()
        saved.update(of_job)


def case_a_full_disk(kv: ps.KV) -> None:
    kv.init("large", torch.ones(3 * SHARD))
    kv.init_rows("of large", dim=2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if dist.get_rank() == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large: the snapshot was not written") as said:
            ps.snapshot("full", ["large", "of large"])
        assert "full.unfinished" in str(said.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    dist.barrier()  # worker 0 takes away what it had begun
    assert not Path("full").exists() and not Path("full.unfinished").exists()
    kv.push("large", torch.ones(3 * SHARD)).wait()
    dist.barrier()
    assert kv.pull("large").unique().tolist() == [3.0]
    ps.snapshot("full", ["large", "of large"])


def case_pushes_go_on(kv: ps.KV) -> None:
    """Each shard and row is of one version: its sum of squares is the number of its pushes."""
    size, ids = 10 * SHARD, torch.arange(5000)
    kv.init("busy", torch.zeros(size), optimizer=ps.Adagrad(lr=1.0))
    kv.init_rows("busy rows", dim=4, optimizer=ps.RowwiseAdagrad(lr=1.0))
    begun, ended = threading.Event(), threading.Event()

    def push() -> None:
        own = ps.KV(timeout=30.0)
        own.init("busy", torch.zeros(size), optimizer=ps.Adagrad(lr=1.0))
        own.init_rows("busy rows", dim=4, optimizer=ps.RowwiseAdagrad(lr=1.0))
        while not ended.is_set():
            own.push("busy", torch.ones(size)).wait()
            own.row_push("busy rows", ids, torch.ones(len(ids), 4)).wait()
            begun.set()

    pushing = threading.Thread(target=push)
    pushing.start()
    assert begun.wait(30.0)
    dist.barrier()
    if dist.get_rank() == 0:
        ps.snapshot("busy", ["busy", "busy rows"], alone=True)
    dist.barrier()
    ended.set()
    pushing.join()
    if dist.get_rank() == 0:
        dcp_to_torch_save("busy", "busy.pt")
        found = torch.load("busy.pt")
        shards = found["busy.state/sum"].view(-1, SHARD)
        assert (shards == found["busy.state/pushes"].float()[:, None]).all()
        values = found["busy"].view(-1, SHARD)
        assert (values == values[:, :1]).all() and (values < 0).all()
        assert len(found["busy rows.ids"]) == len(ids)
        assert torch.equal(found["busy rows.state/sum"], found["busy rows.state/pushes"].float())
        rows = found["busy rows"]
        assert (rows == rows[:, :1]).all()


def case_parameters_and_rows_are_what_they_were(kv: ps.KV) -> None:
    torch.manual_seed(0)
    net = nn.Linear(40, 3)
    optimizer = ps.Optimizer(net.parameters(), torch.optim.SGD, name="net", lr=0.1, momentum=0.9)
    kv.init_rows("net rows", dim=2, initial=ps.Constant(5.0))
    kv.row_push("net rows", [1], torch.ones(1, 2)).wait()

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(1, 40)).sum().backward()
            optimizer.step()
        dist.barrier()
        optimizer.zero_grad()
        optimizer.step()
        dist.barrier()

    train()
    before = [parameter.detach().clone() for parameter in net.parameters()]
    ps.snapshot("net", ["net/0", "net rows"])
    train()
    kv.row_push("net rows", [1, 2], torch.ones(2, 2)).wait()
    assert not torch.equal(net.weight, before[0])
    dist.barrier()
    ps.restore("net", ["net/0", "net rows"])
    for parameter, value in zip(net.parameters(), before, strict=True):
        assert torch.equal(parameter, value)
    rows = kv.row_pull("net rows", [1, 2])
    assert rows.tolist() == [[7.0, 7.0], [5.0, 5.0]]
