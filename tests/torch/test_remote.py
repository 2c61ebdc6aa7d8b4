"""Remote memory: every rank exposes something, and all read and write it from the others."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from torch import nn

from rdmacoll import remote

LACKS = "has no remote memory"
WORLDS = (2, 3, 4, 7)
ROWS, COLUMNS = 301, 67


def values(rank: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return ((torch.arange(ROWS * COLUMNS) * 7 + rank) % 101).to(dtype).view(ROWS, COLUMNS)


def others() -> list[int]:
    rank, world = me()
    return [(rank + step) % world for step in range(1, world)]


@contextlib.contextmanager
def exposed(
    tensor: torch.Tensor, name: str, access: str = "r"
) -> Iterator[tuple[torch.Tensor, remote.Exposure]]:
    """Until all are done with it. The name is free again afterwards."""
    memory = remote.empty_like(tensor, access=access).copy_(tensor)
    exposure = remote.expose(memory, name, access=access)
    yield memory, exposure
    dist.barrier()
    exposure.revoke()
    dist.barrier()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@distributed(*WORLDS, gloo_lacks=LACKS)
def test_read(dtype: torch.dtype) -> None:
    rank, _ = me()
    with exposed(values(rank, dtype), "read"):
        for other in others():
            there, expected = remote.open("read", on=other), values(other, dtype)
            assert (there.shape, there.dtype, there.access) == (expected.shape, dtype, "r")
            assert len(there) == ROWS
            assert torch.equal(there.read(), expected)
            assert torch.equal(there[10:20].read(), expected[10:20])
            assert torch.equal(there[-1].read(), expected[-1])
            assert torch.equal(there[5][3:9].read(), expected[5][3:9])
            assert torch.equal(there[5][3].read(), expected[5][3])
            assert there[7:3].read().shape == (0, COLUMNS)
            out = torch.zeros(ROWS, COLUMNS, dtype=dtype)
            assert there[2:4].read(out[2:4]).data_ptr() == out[2:4].data_ptr()
            assert torch.equal(out[2:4], expected[2:4]) and not out[4:].any()
            rows = [0, 1, 2, 300, 5, 5, 4]
            assert torch.equal(there.read_rows(rows), expected[rows])
            many = torch.arange(5 * ROWS) * 7 % ROWS
            out = torch.zeros(len(many), COLUMNS, dtype=dtype)
            assert there.read_rows_async(many, out).wait() is out
            assert torch.equal(out, expected[many])
            assert there[5:].read_rows(torch.tensor([0, 1])).equal(expected[5:7])
            assert there.read_rows([]).shape == (0, COLUMNS)


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_many_reads_are_under_way_at_once() -> None:
    rank, _ = me()
    with exposed(values(rank), "many"):
        opened = {other: remote.open("many", on=other) for other in others()}
        works = [
            (other, row, opened[other][row].read_async()) for row in range(100) for other in opened
        ]
        for other, row, work in works:
            assert torch.equal(work.wait(), values(other)[row])
            assert work.done()


@distributed(2, 3, gloo_lacks=LACKS)
def test_futures_end_with_their_works() -> None:
    rank, _ = me()
    with exposed(values(rank), "futures") as (_, exposure):
        opened = {other: remote.open("futures", on=other) for other in others()}
        sums = [
            (other, there.read_async().future().then(lambda read: float(read.wait().sum())))
            for other, there in opened.items()
        ]
        for other, total in sums:
            assert total.wait() == float(values(other).sum())
        never = exposure.wait_notify_async(1, timeout=0.05).future()
        with pytest.raises(TimeoutError, match="futures"):
            never.wait()


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_write_and_notify() -> None:
    rank, world = me()
    with exposed(torch.zeros(world, COLUMNS), "inbox", "rw") as (memory, exposure):
        for round in range(1, 4):
            for other in others():
                there = remote.open("inbox", on=other)
                data = torch.full((COLUMNS,), float(100 * rank + round))
                there[rank].write(data, notify=1)
                data.fill_(-1)  # which is the caller's again
                del there
            dist.barrier()
            assert exposure.wait_notify(1) == 1
            for other in others():
                assert (memory[other] == 100 * other + round).all()
            dist.barrier()


@distributed(2, 4, gloo_lacks=LACKS)
def test_notifications_count_up() -> None:
    rank, world = me()
    with exposed(torch.zeros(1 << 18), "counted", "rw") as (memory, exposure):
        there = remote.open("counted", on=(rank + 1) % world)
        for number in range(1, 30):
            there.write(torch.full((1 << 18,), float(number)), notify=number)
            assert exposure.wait_notify(number) == number
            assert (memory == number).all()
            dist.barrier()
        with pytest.raises(ValueError, match="notify=29 is not larger"):
            there.write(torch.zeros(1 << 18), notify=29)
        with pytest.raises(TimeoutError, match="'counted' of 100 or more"):
            exposure.wait_notify(100, timeout=0.05)


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_a_fence_comes_behind_writes() -> None:
    rank, world = me()
    with exposed(torch.zeros(world, 1 << 16), "fenced", "rw") as (memory, _):
        for other in others():
            there = remote.open("fenced", on=other)
            there[rank].write(torch.full((1 << 16,), float(rank + 1)))
            there.fence()
        dist.barrier()
        for other in others():
            assert (memory[other] == other + 1).all()


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_subscribers_read_whole_versions() -> None:
    rank, _ = me()
    net = nn.Sequential(nn.Linear(300, 200), nn.BatchNorm1d(200), nn.Linear(200, 7))
    if rank == 0:
        published = remote.publish(net.state_dict(), "net")
        dist.barrier()
        for version in range(1, 40):
            with torch.no_grad():
                for tensor in net.state_dict().values():
                    tensor.fill_(version)
            assert published.update() == version
    else:
        there = remote.subscribe("net", on=0)
        dist.barrier()
        last = 0
        while last < 39:
            state = there.read(newer=True)
            assert there.version > last
            last = there.version
            assert set(state) == set(net.state_dict())
            for name, tensor in state.items():
                assert tensor.shape == net.state_dict()[name].shape
                assert (tensor == last).all(), (name, last)
        assert there.load_into(net) == 39
        assert (net[0].weight == 39).all()
        with pytest.raises(TimeoutError, match="no version of 'net' newer than 39"):
            there.read(newer=True, timeout=0.05)
    dist.barrier()
    if rank == 0:
        with pytest.raises(ValueError, match="name='net' is exposed already"):
            remote.publish(net.state_dict(), "net")
        with pytest.raises(ValueError, match="other names"):
            published.update({"x": torch.zeros(1)})
        published.close()
    dist.barrier()
    if rank != 0:
        with pytest.raises(remote.RevokedError, match="has taken 'net' back"):
            there.read()


@distributed(2, 3, gloo_lacks=LACKS)
def test_another_dtype_on_the_way() -> None:
    rank, _ = me()
    net = nn.Linear(64, 64)
    nn.init.constant_(net.weight, 1.0078125)
    if rank == 0:
        published = remote.publish(net.state_dict(), "halves", dtype=torch.bfloat16)
        published.update()
    else:
        there = remote.subscribe("halves", on=0)
        state = there.read(newer=True)
        assert state["weight"].dtype == torch.bfloat16
        assert (state["weight"] == torch.tensor(1.0078125, dtype=torch.bfloat16)).all()
    dist.barrier()
    if rank == 0:
        published.close()
    dist.barrier()


@distributed(2, 3, gloo_lacks=LACKS)
def test_revoke() -> None:
    rank, _ = me()
    memory = remote.empty(1000, access="rw")
    exposure = remote.expose(memory, "gone", access="rw")
    opened = [remote.open("gone", on=other) for other in others()]
    dist.barrier()
    exposure.revoke()
    dist.barrier()
    for there in opened:
        with pytest.raises(remote.RevokedError, match="has taken 'gone' back"):
            there.read()
        with pytest.raises(remote.RevokedError):
            there.write(torch.zeros(1000))
        with pytest.raises(remote.RevokedError):
            there.fence()
    with pytest.raises(ValueError, match="nothing under name='gone'"):
        exposure.revoke()
    dist.barrier()
    again = remote.expose(memory.fill_(rank), "gone")
    for other in others():
        assert (remote.open("gone", on=other).read() == other).all()
    dist.barrier()
    again.revoke()


@distributed(2, gloo_lacks=LACKS)
def test_memory_ends_with_its_last_tensor() -> None:
    rank, _ = me()
    before = remote.stats()
    memory = remote.empty(1 << 20)
    assert remote.stats()["memory_bytes"] == before["memory_bytes"] + (4 << 20)
    exposure = remote.expose(memory, "short")
    there = remote.open("short", on=1 - rank)
    there.read()
    dist.barrier()
    assert remote.stats()["openings"] == before["openings"] + 1
    exposure.revoke()
    del memory, exposure
    gc.collect()
    assert remote.stats()["memory_bytes"] == before["memory_bytes"]
    dist.barrier()
    with pytest.raises(remote.RevokedError):
        there.read()
    del there
    dist.barrier()
    assert remote.stats() == before


@distributed(2, gloo_lacks=LACKS)
def test_a_tensor_is_moved_on_request() -> None:
    rank, _ = me()
    net = nn.Linear(8, 8)
    view = net.weight.detach()[2:4]
    expected = net.weight.detach().clone()
    with pytest.raises(ValueError, match="ordinary memory"):
        remote.expose(net.weight.data, "moved")
    exposure = remote.expose(net.weight.data, "moved", move=True)
    weights = exposure.tensor
    assert torch.equal(weights, expected)
    dist.barrier()
    theirs = remote.open("moved", on=1 - rank).read()
    assert theirs.shape == (8, 8)
    assert torch.equal(view, expected[2:4])
    dist.barrier()
    exposure.revoke()


@distributed(2, 4, gloo_lacks=LACKS)
def test_a_work_that_nobody_keeps_goes_on() -> None:
    rank, world = me()
    with exposed(torch.zeros(64, 1 << 16), "let go", "rw") as (memory, exposure):
        there = remote.open("let go", on=(rank + 1) % world)
        for row in range(64):
            there[row].write_async(torch.full((1 << 16,), float(row + 1)), notify=row + 1)
        there.fence()
        assert exposure.wait_notify(64) == 64
        assert (memory == torch.arange(1.0, 65.0).unsqueeze(1)).all()


@distributed(2, gloo_lacks=LACKS)
def test_what_is_written_is_not_closed_before_it_was_notified_of() -> None:
    rank, _ = me()
    large = torch.ones(16 << 20)
    with (
        exposed(large * 0, "left", "rw") as (_, left),
        exposed(large[:1], "next", "rw") as (_, next),
    ):
        remote.open("left", on=1 - rank).write_async(large, notify=7)
        there = remote.open("next", on=1 - rank)  # has the line of what is closed, if it is
        assert left.wait_notify(7) == 7
        there.fence()
        assert next.notified == 0
        dist.barrier()


@distributed(2, 4, gloo_lacks=LACKS)
def test_nothing_but_the_data_moves() -> None:
    rank, world = me()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    with exposed(values(rank), "still"), exposed(values(rank), "stilled", "rw"):
        other = (rank + 1) % world
        there, written = remote.open("still", on=other), remote.open("stilled", on=other)
        out, data = remote.empty(ROWS, COLUMNS), remote.empty(ROWS, COLUMNS)
        there.read(out)
        written.write(data, notify=1)
        dist.barrier()
        before = backend._counters()
        for number in range(2, 200):
            there.read(out)
            written.write(data, notify=number)
        after = backend._counters()
        assert after["registrations"] == before["registrations"]
        # Over verbs who is notified says now and then that there is room for more.
        assert after["control_messages"] - before["control_messages"] <= 198 // 8
        dist.barrier()


@distributed(2, gloo_lacks=LACKS)
def test_wrong_arguments() -> None:
    rank, _ = me()
    other = 1 - rank
    with exposed(values(rank), "right"), exposed(values(rank), "writable", "rw"):
        there, writable = remote.open("right", on=other), remote.open("writable", on=other)
        memory = remote.empty(4, 4)
        wrong = [
            (ValueError, "access='w'", lambda: remote.empty(3, access="w")),
            (ValueError, "negative", lambda: remote.empty(3, -1)),
            (ValueError, "taken|exposed already", lambda: remote.expose(memory, "right")),
            (ValueError, "not contiguous", lambda: remote.expose(memory.t(), "t")),
            (ValueError, "ordinary memory", lambda: remote.expose(torch.zeros(3), "o")),
            (ValueError, "can only read", lambda: remote.expose(memory, "w", access="rw")),
            (ValueError, "has 0 bytes", lambda: remote.expose(memory, "")),
            (ValueError, "has 300 bytes", lambda: remote.expose(memory, "x" * 300)),
            (TypeError, "give a string", lambda: remote.expose(memory, 3)),
            (TypeError, "give a tensor", lambda: remote.expose([1], "l")),
            (ValueError, "on=2 is not a rank", lambda: remote.open("right", on=2)),
            (ValueError, "this rank itself", lambda: remote.open("right", on=rank)),
            (TypeError, "give a rank", lambda: remote.open("right", on="0")),
            (TimeoutError, "'none'", lambda: remote.open("none", on=other, timeout=0.05)),
            (ValueError, "timeout=-1", lambda: remote.open("right", on=other, timeout=-1)),
            (TypeError, "give seconds", lambda: there.read(timeout="1")),
            (ValueError, "has shape", lambda: there.read(torch.zeros(3))),
            (ValueError, "dtype", lambda: there.read(torch.zeros(ROWS, COLUMNS).int())),
            (ValueError, "contiguous", lambda: there.read(torch.zeros(COLUMNS, ROWS).t())),
            (ValueError, "conjugates", lambda: remote.expose(torch.zeros(2).cfloat().conj(), "c")),
            (ValueError, "is for reading", lambda: there.write(values(0))),
            (ValueError, "notify=0", lambda: writable.write(values(0), notify=0)),
            (ValueError, "step=2", lambda: there[::2]),
            (IndexError, "301 rows", lambda: there[ROWS]),
            (IndexError, "row -1", lambda: there.read_rows([0, -1])),
            (TypeError, "rows has dtype torch.float32", lambda: there.read_rows([1.5])),
            (TypeError, "rows has dtype torch.bool", lambda: there.read_rows([True])),
            (TypeError, "integer or a slice", lambda: there["a"]),
            (IndexError, "without dimensions", lambda: there[0][0][0]),
        ]
        for error, match, call in wrong:
            with pytest.raises(error, match=match):
                call()
        assert torch.equal(there.read(), values(other))


@distributed(2, gloo_lacks=LACKS)
def test_without_a_group() -> None:
    rank, _ = me()
    with exposed(values(rank), "kept"):
        there = remote.open("kept", on=1 - rank)
        group = dist.new_group()
        dist.destroy_process_group(group)
        assert torch.equal(there.read(), values(1 - rank))
