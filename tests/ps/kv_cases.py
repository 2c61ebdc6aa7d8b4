"""What KV does, in jobs of any number of workers and servers. Values are small integers, so sums
are exact in whatever order servers take pushes.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import os
import threading
import time

import torch
import torch.distributed as dist

from rdmacoll import ps

SHARD = 256 * 1024  # elements: kShardElements in csrc/ps/table/table_spec.h
PUSHES = 3
SIZES = {"small": (7, 3), "a shard": (SHARD,), "shards": (3, SHARD + 1), "one": ()}


def whole(shape: tuple[int, ...], of: int) -> torch.Tensor:
    """Integers that are others for another `of`."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * (of + 3)) % 11 - 5.0).reshape(shape)


def everyones(value: torch.Tensor) -> list[torch.Tensor]:
    all_of_them = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(all_of_them, value)
    return all_of_them


def case_sums_of_all_workers(kv: ps.KV) -> None:
    workers = range(dist.get_world_size())
    for size, shape in SIZES.items():
        kv.init(f"sum of {size}", whole(shape, 100))
        pushed = [
            kv.push(f"sum of {size}", whole(shape, dist.get_rank() + number))
            for number in range(PUSHES)
        ]
        kv.wait(*pushed)
        assert all(push.done() and push.wait() is None for push in pushed)
    dist.barrier()
    for size, shape in SIZES.items():
        wanted = whole(shape, 100)
        for worker in workers:
            for number in range(PUSHES):
                wanted += whole(shape, worker + number)
        assert torch.equal(kv.pull(f"sum of {size}"), wanted), size
        out = torch.full(shape, torch.nan)
        assert kv.pull(f"sum of {size}", out=out) is out
        assert torch.equal(out, wanted), size


def case_the_first_workers_values_count(kv: ps.KV) -> None:
    for size, shape in SIZES.items():
        kv.init(f"first of {size}", torch.full(shape, float(dist.get_rank())))
        values = kv.pull(f"first of {size}")
        assert values.unique().numel() == 1 and int(values.max()) in range(dist.get_world_size())
        assert all(torch.equal(values, other) for other in everyones(values))


def case_a_worker_pulls_what_it_has_pushed(kv: ps.KV) -> None:
    own = f"own {dist.get_rank()}"
    kv.init(own, torch.zeros(2, SHARD), optimizer=ps.SGD(lr=1.0))
    for number in range(5):
        kv.push(own, whole((2, SHARD), number))
    pulled = kv.pull(own)
    assert torch.equal(pulled, -sum((whole((2, SHARD), n) for n in range(5)), torch.zeros(1)))
    out = torch.empty(2, SHARD)
    assert kv.push_pull(own, pulled, out=out) is out and not out.any()
    assert torch.equal(kv.push_pull(own, torch.ones(2, SHARD)), -torch.ones(2, SHARD))


def case_memory_that_servers_read(kv: ps.KV) -> None:
    kv.init("read", torch.zeros(3 * SHARD + 1))
    for number in range(1, 4):  # some of these pushes come before servers know of the memory
        values = kv.empty(3 * SHARD + 1)
        assert values.count_nonzero() == 0
        for _ in range(2):
            values.fill_(number)
            kv.push("read", values).wait()
            values.fill_(torch.nan)  # which is nothing to servers any more
        part = kv.empty((2, 5))
        part[1] = number
        kv.push_range("read", SHARD - 2, part[1]).wait()
        part[1] = torch.nan
        time.sleep(0.05)
    dist.barrier()
    wanted = torch.full((3 * SHARD + 1,), 12.0)
    wanted[SHARD - 2 : SHARD + 3] += 6
    assert torch.equal(kv.pull("read"), wanted * dist.get_world_size())


def case_what_is_read_by_servers_may_be_let_go(kv: ps.KV) -> None:
    kv.init("let go", torch.zeros(4 * SHARD))
    for _ in range(5):
        values = kv.empty(4 * SHARD).fill_(1)
        kv.push("let go", values)
        del values
    dist.barrier()
    for _ in range(200):
        kv.push("let go", torch.zeros(4 * SHARD)).wait()
        if kv.pull("let go")[0] == 5 * dist.get_world_size():
            break
    assert torch.equal(kv.pull("let go"), torch.full((4 * SHARD,), 5.0 * dist.get_world_size()))


def case_ranges(kv: ps.KV) -> None:
    own, shape = f"ranges {dist.get_rank()}", (2, SHARD)
    kv.init(own, torch.zeros(shape), optimizer=ps.SGD(lr=1.0))
    wanted = torch.zeros(2 * SHARD)
    for first, end in (
        (0, 3),
        (SHARD - 2, SHARD + 2),
        (7, 7),
        (5, 2 * SHARD),
        (2 * SHARD, 2 * SHARD),
    ):
        kv.push_range(own, first, torch.full((end - first,), float(end)))
        wanted[first:end] -= end
        pulled = torch.full((end - first,), torch.nan)
        assert kv.pull_range(own, first, pulled) is pulled
        assert torch.equal(pulled, wanted[first:end])
    assert torch.equal(kv.pull(own).flatten(), wanted)
    part = torch.full((9,), torch.nan)
    assert kv.pull_range_async(own, SHARD - 1, part[2:7]).wait() is not None
    assert torch.equal(part[2:7], wanted[SHARD - 1 : SHARD + 4])
    assert part.isnan().tolist() == [True] * 2 + [False] * 5 + [True] * 2


def case_pulls_side_by_side(kv: ps.KV) -> None:
    shapes = [(SHARD + 1,), (5,), (2, SHARD)]
    for number, shape in enumerate(shapes):
        kv.init(f"side {number}", whole(shape, number))
    pending = [kv.pull_async(f"side {number}") for number in range(len(shapes))]
    for number, shape in reversed(list(enumerate(shapes))):
        pulled = pending[number].wait()
        assert pulled is not None and torch.equal(pulled, whole(shape, number))


def case_what_is_let_go_is_done_all_the_same(kv: ps.KV) -> None:
    """A push is not lost, and a pull writes to no memory that another tensor has by now."""
    own = f"let go {dist.get_rank()}"
    kv.init(own, torch.zeros(4, SHARD))
    for _ in range(10):
        kv.push(own, torch.ones(4, SHARD))
        kv.pull_async(own)
        fresh = torch.full((4, SHARD), 7.0)
        kv.push(own, torch.zeros(4, SHARD)).wait()
        assert bool((fresh == 7).all())
    assert torch.equal(kv.pull(own), torch.full((4, SHARD), 10.0))


ANY_IDS = torch.tensor([-1, 0, 1, 2**63 - 1, -(2**63), 5, 2**40, -(2**40)])


def drawn_rows(worker: int, ids: torch.Tensor, count: int, dim: int) -> list[torch.Tensor]:
    """As many of these ids, most of them more than once, and a row for each."""
    generator = torch.Generator().manual_seed(worker)
    drawn = ids[torch.randint(len(ids), (count,), generator=generator)]
    return [drawn, torch.randint(-4, 5, (count, dim), generator=generator).float()]


def rows_pushed_by_all(kv: ps.KV, name: str, ids: torch.Tensor, count: int, dim: int) -> None:
    mine, values = drawn_rows(dist.get_rank(), ids, count, dim)
    kv.row_push(name, mine[: count // 2], values[: count // 2])
    kv.row_push(name, mine[count // 2 :], values[count // 2 :]).wait()
    dist.barrier()
    wanted = torch.zeros(len(ids), dim)
    place = {int(id): number for number, id in enumerate(ids)}
    for worker in range(dist.get_world_size()):
        theirs, rows = drawn_rows(worker, ids, count, dim)
        wanted.index_add_(0, torch.tensor([place[int(id)] for id in theirs]), rows)
    assert torch.equal(kv.row_pull(name, ids), wanted)
    order = torch.randperm(len(ids)).repeat(2)
    out = torch.full((len(order), dim), torch.nan)
    assert kv.row_pull(name, ids[order], out=out) is out
    assert torch.equal(out, wanted[order])
    assert kv.row_pull(name, []).shape == (0, dim)
    assert kv.row_push(name, torch.empty(0, dtype=torch.int64), torch.empty(0, dim)).wait() is None
    assert torch.equal(kv.row_pull(name, ids), wanted)


def case_rows_of_any_ids(kv: ps.KV) -> None:
    kv.init_rows("any ids", dim=3)
    rows_pushed_by_all(kv, "any ids", ANY_IDS, count=100, dim=3)


def case_rows_of_many_messages(kv: ps.KV) -> None:
    kv.init_rows("many rows", dim=256, rows=4000)
    rows_pushed_by_all(kv, "many rows", torch.arange(4000), count=9000, dim=256)


def case_rows_as_long_as_they_may_be(kv: ps.KV) -> None:
    kv.init_rows("long rows", dim=64 * 1024, rows=9)
    rows_pushed_by_all(kv, "long rows", torch.arange(9), count=20, dim=64 * 1024)


def case_ids_of_any_kind(kv: ps.KV) -> None:
    own = f"kinds {dist.get_rank()}"
    kv.init_rows(own, dim=1, rows=256)
    kinds = [torch.int8, torch.uint8, torch.int32, torch.int64]
    for kind in kinds:
        kv.row_push(own, torch.tensor([[3, 4]], dtype=kind), torch.ones(2, 1))
    kv.row_push(own, [4, 200], torch.ones(2, 1))
    kv.row_push(own, torch.arange(10)[3:5:1][::1], torch.ones(2, 1))
    kv.row_push(own, torch.arange(3, 9)[::4], torch.ones(2, 1))  # 3 and 7
    assert kv.row_pull(own, [3, 4, 200, 7, 8]).flatten().tolist() == [6, 6, 1, 1, 0]


def case_initial_rows(kv: ps.KV) -> None:
    ids = torch.cat([torch.arange(2000), ANY_IDS])
    kv.init_rows("constant", dim=4, initial=ps.Constant(0.5))
    kv.init_rows("uniform", dim=4, initial=ps.Uniform(-1.0, 3.0, seed=1))
    kv.init_rows("normal", dim=4, initial=ps.Normal(2.0, 0.5, seed=1))
    kv.init_rows("other seed", dim=4, initial=ps.Normal(2.0, 0.5, seed=2))
    assert bool((kv.row_pull("constant", ids) == 0.5).all())
    uniform, normal = kv.row_pull("uniform", ids), kv.row_pull("normal", ids)
    for values in uniform, normal:
        assert all(torch.equal(values, other) for other in everyones(values))
    assert -1.0 <= uniform.min() < -0.9 and 2.9 < uniform.max() < 3.0
    assert abs(uniform.mean() - 1.0) < 0.1 and abs(uniform.std() - 4 / 12**0.5) < 0.1
    assert abs(normal.mean() - 2.0) < 0.05 and abs(normal.std() - 0.5) < 0.05
    assert len(uniform.unique()) > 7000 and len(normal.unique()) > 7000
    assert not torch.equal(normal, kv.row_pull("other seed", ids))
    kv.row_push("constant", [1], torch.ones(1, 4)).wait()  # a push makes a row, too
    dist.barrier()
    assert bool((kv.row_pull("constant", [1]) == 0.5 + dist.get_world_size()).all())


def case_a_forked_child_is_told(kv: ps.KV) -> None:
    own = f"forked {dist.get_rank()}"
    kv.init(own, torch.zeros(10))
    pushed = kv.push(own, torch.ones(10))
    calls = [
        lambda: kv.pull(own),
        lambda: kv.push(own, torch.ones(10)),
        lambda: kv.init(own + " there", torch.zeros(1)),
        lambda: ps.KV().init(own, torch.zeros(10)),
        pushed.wait,
    ]
    for number, call in enumerate(calls):
        child = os.fork()
        if child == 0:
            try:
                call()
                os._exit(1)
            except RuntimeError as error:
                os._exit(0 if "fork" in str(error) else 2)
            except BaseException:
                os._exit(3)
        until = time.monotonic() + 20
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, 9)
            os.waitpid(child, 0)
            raise AssertionError(f"call {number} hangs in a child")
        assert os.waitstatus_to_exitcode(ended[1]) == 0, (number, ended)
    pushed.wait()
    assert torch.equal(kv.pull(own), torch.ones(10))


def case_several_threads(kv: ps.KV) -> None:
    """Each pulls what it has pushed to a table of its own, and all push to one."""
    threads, rank = 4, dist.get_rank()
    kv.init("all threads", torch.zeros(SHARD + 1))
    kv.init_rows("all threads' rows", dim=2)
    failed: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            own = ps.KV(timeout=30.0)
            own.init(f"thread {rank} {thread}", torch.zeros(1000))
            for step in range(1, 11):
                kv.push("all threads", torch.ones(SHARD + 1))
                kv.row_push("all threads' rows", [thread, -7], torch.ones(2, 2))
                own.push(f"thread {rank} {thread}", torch.ones(1000))
                pulled = own.pull(f"thread {rank} {thread}")
                assert bool((pulled == step).all())
            assert kv.pull("all threads").min() >= 10
        except BaseException as error:
            failed.append(error)

    all_threads = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    assert not failed, failed
    dist.barrier()
    workers = dist.get_world_size()
    assert bool((kv.pull("all threads") == 10 * threads * workers).all())
    wanted = [10.0 * workers] * threads + [10.0 * threads * workers]
    assert kv.row_pull("all threads' rows", [*range(threads), -7])[:, 0].tolist() == wanted
