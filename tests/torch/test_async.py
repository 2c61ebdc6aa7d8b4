"""Operations in flight: many at once, waited for in any order, futures, callbacks, threads."""

from __future__ import annotations

import random
import threading
from typing import Any

import torch
import torch.distributed as dist
from cases import Op, check, done, expect_reduced, me, values
from harness import ALL_WORLDS, distributed

IN_FLIGHT = 64


@distributed(*ALL_WORLDS)
def test_many_in_flight_waited_out_of_order() -> None:
    rank, world = me()
    counts = [(i * 379) % 9000 for i in range(IN_FLIGHT)]
    tensors = [values(rank, count, torch.float32) for count in counts]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    order = list(range(IN_FLIGHT))
    random.Random(rank).shuffle(order)  # another order on every rank
    for i in order:
        works[i].wait()
        assert works[i].is_completed()
        check(tensors[i], expect_reduced(counts[i], torch.float32, Op.SUM), i)


@distributed(2, 3, 4)
def test_kinds_mixed_in_flight() -> None:
    rank, world = me()
    reduce, cast = values(rank, 70_001, torch.float32), values(rank, 70_001, torch.float32)
    gathered = torch.zeros(world * 999)
    exchanged = torch.zeros(world)
    works = [
        dist.all_reduce(reduce, async_op=True),
        dist.broadcast(cast, world - 1, async_op=True),
        dist.all_gather_into_tensor(gathered, values(rank, 999, torch.float32), async_op=True),
        dist.all_to_all_single(exchanged, torch.full((world,), float(rank)), async_op=True),
        dist.barrier(async_op=True),
    ]
    for work in reversed(works):
        done(work)
    check(reduce, expect_reduced(70_001, torch.float32, Op.SUM), "all_reduce")
    check(cast, values(world - 1, 70_001, torch.float32), "broadcast")
    everyone = torch.cat([values(peer, 999, torch.float32) for peer in range(world)])
    check(gathered, everyone, "all_gather")
    check(exchanged, torch.arange(world).float(), "all_to_all")


@distributed(2)
def test_a_synchronous_call_returns_no_work() -> None:
    tensor = torch.ones(3)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    assert dist.group.WORLD is not None
    assert dist.group.WORLD.allreduce([tensor], options) is None
    assert tensor.tolist() == [2.0] * 3


@distributed(2, 3)
def test_dropped_works_still_happen() -> None:
    rank, world = me()
    tensors = [torch.full((500,), float(rank)) for _ in range(10)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    last = dist.all_reduce(torch.ones(1), async_op=True)
    last.wait()
    everyone = torch.full((500,), float(world * (world - 1) // 2))
    for (
        tensor
    ) in tensors:  # the barrier came behind them in order, so they are done or soon will be
        while not torch.equal(tensor, everyone):
            dist.barrier()


@distributed(1, 2, 3)
def test_temporaries_live_until_the_end() -> None:
    rank, world = me()
    works = []
    outputs = [torch.zeros(world * 3000) for _ in range(20)]
    for i, output in enumerate(outputs):
        own = torch.full((3000,), float(rank * 100 + i))  # nobody else refers to it
        works.append(dist.all_gather_into_tensor(output, own, async_op=True))
        del own
    for i, (work, output) in enumerate(zip(works, outputs, strict=True)):
        work.wait()
        assert output[::3000].tolist() == [float(peer * 100 + i) for peer in range(world)]


@distributed(1, 2, 3)
def test_future_holds_the_result() -> None:
    rank, world = me()
    tensor = torch.full((100,), float(rank))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    result = future.wait()
    assert isinstance(result, list)
    assert result[0].data_ptr() == tensor.data_ptr()
    assert tensor[0].item() == world * (world - 1) // 2


@distributed(2, 3)
def test_future_callbacks() -> None:
    """then() may start the next collective from the thread that finished the last."""
    _, world = me()
    group = dist.new_group()
    first, second = torch.ones(2000), torch.ones(3000)

    def next_one(_: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        second.mul_(first[0].item())
        dist.all_reduce(second, group=group)
        return second

    future = dist.all_reduce(first, async_op=True).get_future().then(next_one)
    assert future.wait()[0].item() == world * world
    dist.destroy_process_group(group)


@distributed(2, 3)
def test_only_futures_are_waited_for() -> None:
    """As DDP does: nobody calls Work.wait, the background thread is the path."""
    rank, world = me()
    tensors = [torch.full((50_000,), float(rank + i)) for i in range(12)]
    futures = [dist.all_reduce(t, async_op=True).get_future() for t in tensors]
    torch.futures.wait_all(futures)
    for i, tensor in enumerate(tensors):
        assert tensor[-1].item() == world * i + world * (world - 1) // 2


@distributed(2, 3)
def test_is_completed_without_waiting() -> None:
    work = dist.all_reduce(torch.ones(100_000), async_op=True)
    while not work.is_completed():
        pass
    assert work.exception() is None


@distributed(2, 3)
def test_threads_with_a_group_each() -> None:
    rank, world = me()
    groups = [dist.new_group() for _ in range(3)]
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for step in range(50):
                tensor = torch.full((1 + 700 * number,), float(rank + step))
                dist.all_reduce(tensor, group=groups[number])
                assert tensor[0].item() == world * step + world * (world - 1) // 2
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for group in groups:
        dist.destroy_process_group(group)


@distributed(2, gloo_lacks="wakes only one of them")
def test_two_threads_wait_for_one_work() -> None:
    rank, _ = me()
    seen = []
    if rank == 0:
        work = dist.irecv(torch.zeros(10), 1)
        assert work is not None
        threads = [threading.Thread(target=lambda: seen.append(work.wait())) for _ in range(2)]
        for thread in threads:
            thread.start()
    dist.barrier(group=dist.group.WORLD)
    if rank == 0:
        for thread in threads:
            thread.join()
        assert len(seen) == 2
    else:
        dist.send(torch.zeros(10), 0)


@distributed(2, 3, deadline_s=60.0, gloo_lacks="ends the process")
def test_a_callback_destroys_its_group() -> None:
    """At once: destroying waits for all that is in flight, but not for its own callback."""
    for step in range(10):
        group = dist.new_group()
        tensor = torch.ones(5000 * step)

        def end(_: torch.futures.Future[list[torch.Tensor]], group: Any = group) -> str:
            dist.destroy_process_group(group)
            return "ended"

        work = dist.all_reduce(tensor, group=group, async_op=True)
        future = work.get_future().then(end)
        if step % 2:
            work.wait()  # it runs here, or where the other half does
        assert future.wait() == "ended"
    dist.barrier()


def two_callbacks_that_shut_down(group: dist.ProcessGroup) -> None:
    second = threading.Event()

    def end_first(_: torch.futures.Future[list[torch.Tensor]]) -> None:
        dist.send(torch.ones(1), 1)  # asks for the second message: both callbacks run at once
        assert second.wait(timeout=30)
        group.shutdown()

    def end_second(_: torch.futures.Future[list[torch.Tensor]]) -> None:
        second.set()
        group.shutdown()

    futures = []
    for tag, end in enumerate((end_first, end_second)):
        work = dist.irecv(torch.zeros(1), 1, group=group, tag=tag)
        assert work is not None
        futures.append(work.get_future().then(end))
    dist.barrier()
    torch.futures.wait_all(futures)


@distributed(2, deadline_s=60.0, gloo_lacks="ends the process")
def test_two_callbacks_shut_their_group_down() -> None:
    """Neither waits for the other."""
    rank, _ = me()
    for _ in range(6):
        group = dist.new_group()
        assert group is not None
        if rank == 0:
            two_callbacks_that_shut_down(group)
        else:
            dist.barrier()
            dist.send(torch.ones(1), 0, group=group, tag=0)
            dist.recv(torch.ones(1), 0)
            dist.send(torch.ones(1), 0, group=group, tag=1)
        dist.destroy_process_group(group)
        dist.barrier()
