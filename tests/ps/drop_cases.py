"""What becomes of tables that are dropped: their memory, their names, and who still uses them.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import lost
import pytest
import torch
import torch.distributed as dist

from rdmacoll import ps

SHARD = 256 * 1024  # elements: kShardElements in csrc/ps/table/table_spec.h
FLOATS = 16 * SHARD  # of 16 MiB
SOON_S = 20.0


def drop_of_all(kv: ps.KV, name: str) -> None:
    """One worker drops it, when none uses it any more."""
    dist.barrier()
    if dist.get_rank() == 0:
        kv.drop(name)
    dist.barrier()


def shared_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssShmem:")) * 1024


def used_bytes() -> int:
    """As servers have said it last, which they do once a second."""
    return sum(one.memory_bytes for one in ps.stats().servers)


def case_nothing_of_the_name(kv: ps.KV) -> None:
    with pytest.raises(ValueError, match="name='nowhere' is no table of this job"):
        kv.drop("nowhere")
    with pytest.raises((TypeError, ValueError), match="name"):
        kv.drop("")


def use_and_drop(kv: ps.KV) -> None:
    kv.init("large", torch.zeros(FLOATS), optimizer=ps.Adam())
    kv.init_rows("many", dim=1024)
    kv.row_push("many", list(range(4096)), torch.ones(4096, 1024)).wait()  # 16 MiB
    for _ in range(2):  # the second time it is read in the servers' memory
        kv.pull("large")
        kv.row_pull("many", list(range(4096)))
    drop_of_all(kv, "large")
    drop_of_all(kv, "many")


def case_its_memory_is_free(kv: ps.KV) -> None:
    kv.init("stays", torch.ones(8))
    use_and_drop(kv)  # the rings between workers and servers stay in memory
    pids = [lost.server(number) for number in range(len(ps.stats().servers))]
    pids.append(os.getpid())
    before = [shared_bytes(pid) for pid in pids]
    dist.barrier()
    for _ in range(3):
        use_and_drop(kv)
    for pid, bytes_before in zip(pids, before, strict=True):
        more = shared_bytes(pid) - bytes_before
        assert more < 10 * FLOATS, f"process {pid} of {pids} has {more} bytes more than before"
    until = time.monotonic() + SOON_S
    while used_bytes() > FLOATS:
        assert time.monotonic() < until, f"servers say that they use {used_bytes()} bytes"
        time.sleep(0.1)
    assert "large" not in {table.name for table in ps.stats().tables}
    assert kv.pull("stays").unique().tolist() == [1.0]


def case_who_uses_it_is_told(kv: ps.KV) -> None:
    kv.init("gone", torch.zeros(2 * SHARD))
    kv.init_rows("gone rows", dim=4)
    kv.init("beside", torch.zeros(2 * SHARD))
    kv.pull("gone")
    kv.row_pull("gone rows", [1, 2])
    drop_of_all(kv, "gone")
    drop_of_all(kv, "gone rows")
    for use in (
        lambda: kv.pull("gone"),
        lambda: kv.push("gone", torch.ones(2 * SHARD)).wait(),
        lambda: kv.push_range("gone", 5, torch.ones(3)).wait(),
        lambda: kv.row_pull("gone rows", [1, 2]),
        lambda: kv.row_push("gone rows", [1, 2], torch.ones(2, 4)).wait(),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match="'gone.*' was dropped; make it anew with init"):
                use()
    for _ in range(3):  # of the same buckets as what was refused, some of them
        kv.push("beside", torch.ones(2 * SHARD)).wait()
    dist.barrier()
    assert kv.pull("beside").unique().tolist() == [3.0 * dist.get_world_size()]
    dist.barrier()
    if dist.get_rank() == 0:
        with pytest.raises(ValueError, match="no table of this job"):
            kv.drop("gone")


def case_another_one_of_the_name(kv: ps.KV) -> None:
    for size in 5, 2 * SHARD, 7:
        kv.init("again", torch.full((size,), float(size)))
        kv.push("again", torch.ones(size)).wait()
        dist.barrier()
        wanted = float(size + dist.get_world_size())
        assert kv.pull("again").tolist() == [wanted] * size
        drop_of_all(kv, "again")
    for size in 3, 4:
        net = torch.nn.Linear(size, 1)
        optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), ps.Sync(), name="net")
        net(torch.ones(2, size)).sum().backward()
        optimizer.step()
        drop_of_all(kv, "net")
    for pace in ps.Async(), ps.Sync(), ps.Stale(1):
        bag = ps.EmbeddingBag("bag", dim=4, mode="sum", pace=pace, optimizer=ps.SGD(lr=1.0))
        bag(torch.tensor([[1, 2]])).sum().backward()
        bag.wait()
        drop_of_all(kv, "bag")
    for size, pace in (3, ps.Async()), (4, ps.Sync()):
        ps.Optimizer(torch.nn.Linear(size, 1).parameters(), ps.SGD(), ps.Sync(), name="again/net")
        ps.EmbeddingBag("again/bag", dim=4, mode="sum", pace=pace)
        drop_of_all(kv, "again")  # with those below it
    names = {table.name for table in ps.stats().tables}
    assert not {name for name in names if name.startswith(("net", "bag", "again"))}, names


def case_others_stay(kv: ps.KV) -> None:
    """`ab` and `b/a` are no parts of `a`."""
    for name in "a", "a/0", "ab", "b/a":
        kv.init(name, torch.ones(3))
    drop_of_all(kv, "a")
    for name in "ab", "b/a":
        assert kv.pull(name).tolist() == [1.0] * 3
    for name in "a", "a/0":
        with pytest.raises(ValueError, match="was dropped"):
            kv.pull(name)


def case_snapshots_have_the_rest(kv: ps.KV) -> None:
    kv.init("saved", torch.ones(3))
    kv.init("not saved", torch.ones(3))
    drop_of_all(kv, "not saved")
    ps.snapshot("without it")
    kv.push("saved", torch.ones(3)).wait()
    dist.barrier()
    ps.restore("without it")
    assert kv.pull("saved").tolist() == [1.0] * 3
    dist.barrier()


def case_pushes_to_others_go_on(kv: ps.KV) -> None:
    """While tables come and go, sums are exact."""
    kv.init("goes on", torch.zeros(3 * SHARD))
    pushes = 40
    pending = []
    for number in range(pushes):
        pending.append(kv.push("goes on", torch.ones(3 * SHARD)))
        if dist.get_rank() == 0 and number % 4 == 0:
            kv.init(f"passes {number}", torch.zeros(3 * SHARD))
            kv.push(f"passes {number}", torch.ones(3 * SHARD))  # its end is not waited for
            kv.drop(f"passes {number}")
    kv.wait(*pending)
    dist.barrier()
    assert kv.pull("goes on").unique().tolist() == [float(pushes * dist.get_world_size())]
