"""When a rank dies or does not come, the others raise, soon, and the message says what they did.

The operations' own timeouts are far longer than a body may take: a test that waited for one would
be reported as hung.
"""

from __future__ import annotations

import datetime
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from cases import me
from failing import raised, stay_away
from harness import distributed
from models import net, train
from torch.nn.parallel import DistributedDataParallel as DDP

HOUR = datetime.timedelta(hours=1)
SECOND = datetime.timedelta(seconds=1)
FAR = "a rank that exchanges nothing with the dead one waits for its timeout"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def survive(wait: Callable[[], object]) -> None:
    """Rank 1 dies once all are there; the others raise, now and in what they try next."""
    rank, _ = me()
    dist.barrier()
    if rank == 1:
        die()
    with pytest.raises(RuntimeError):
        wait()
    with pytest.raises(RuntimeError):
        wait()


def patient_group() -> dist.ProcessGroup:
    return dist.new_group(timeout=HOUR)


class Stuck(torch.utils.data.Dataset[int]):
    """Its workers never end of themselves: each says who it is, and fetches for ever."""

    def __init__(self, tell: multiprocessing.SimpleQueue[int]) -> None:
        self._tell = tell

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        signal.alarm(60)  # longer than the test waits
        self._tell.put(os.getpid())
        signal.pause()
        return index


def worker_of_a_loader() -> int:
    """The pid of a DataLoader's worker that this rank has forked."""
    fork = multiprocessing.get_context("fork")
    pids = fork.SimpleQueue()
    loader = torch.utils.data.DataLoader(Stuck(pids), num_workers=1, multiprocessing_context=fork)
    KEPT.append(iter(loader))
    return int(pids.get())


KEPT: list[object] = []  # so that no loader ends its worker


@distributed(
    2,
    dies=(1,),
    init=False,
    deadline_s=45.0,
    gloo_lacks="has no transports to choose from",
    one_host=True,  # the body sets RDMACOLL_HOST_ID
)
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_death_of_a_rank_whose_worker_lives(transport: str) -> None:
    """A worker has copies of what its rank had open; none may hide the end of the rank."""
    rank = int(os.environ["RANK"])
    host = rank if transport == "tcp" else 0
    os.environ |= {"RDMACOLL_HOST_ID": f"host{host}", "RDMACOLL_TRANSPORT": transport}
    dist.init_process_group("rdma", timeout=HOUR)
    dist.barrier()
    pids: list[int] = [0, 0]
    dist.all_gather_object(pids, worker_of_a_loader() if rank == 1 else 0)
    if rank == 1:
        die()
    with pytest.raises(RuntimeError, match="ended"):
        dist.all_reduce(torch.ones(1000))
    os.kill(pids[1], signal.SIGKILL)  # which raises if it does not live


@distributed(2, 3, 4, dies=(1,), gloo_lacks=FAR)
def test_death_in_all_reduce() -> None:
    group = patient_group()
    survive(lambda: dist.all_reduce(torch.ones(1000), group=group))


@distributed(3, dies=(1,), gloo_lacks=FAR)
def test_death_in_large_all_reduce() -> None:
    group = patient_group()
    survive(lambda: dist.all_reduce(torch.ones(2_000_000), group=group))


@distributed(2, 3, dies=(1,), gloo_lacks="its barrier may end in the second rank's favour")
def test_death_in_barrier() -> None:
    group = patient_group()
    survive(lambda: dist.barrier(group=group))


@distributed(2, dies=(1,))
def test_death_in_recv() -> None:
    group = patient_group()
    survive(lambda: dist.recv(torch.ones(10), 1, group=group))


@distributed(3, dies=(1,))
def test_death_while_only_a_future_is_waited_for() -> None:
    group = patient_group()

    def wait() -> None:
        dist.all_reduce(torch.ones(10), group=group, async_op=True).get_future().wait()

    survive(wait)


@distributed(3, dies=(1,))
def test_death_in_training() -> None:
    model = DDP(net(), process_group=patient_group())
    train(model)
    rank, _ = me()
    if rank == 1:
        die()
    with pytest.raises(RuntimeError):
        train(model)


@distributed(3, dies=(1,), gloo_lacks="names neither rank nor operation")
def test_message_names_the_dead_and_the_operation() -> None:
    group = patient_group()
    dist.barrier(group=group)
    if dist.get_rank() == 1:
        die()
    with pytest.raises(RuntimeError, match=r"(?i)rank 1\b") as caught:
        dist.all_reduce(torch.ones(1000), group=group)
    assert "all_reduce" in str(caught.value)


@distributed(4, dies=(3,), gloo_lacks=FAR)
def test_groups_without_the_dead_go_on() -> None:
    rank, _ = me()
    pair, everyone = dist.new_group([0, 1]), patient_group()
    dist.barrier(group=everyone)
    if rank == 3:
        die()
    # All that live call it: over hosts one of them hears of the dead one through another's failure.
    with pytest.raises(RuntimeError):
        dist.all_reduce(torch.ones(10), group=everyone)
        dist.all_reduce(torch.ones(10), group=everyone)
    for _ in range(5 if rank < 2 else 0):
        tensor = torch.ones(10)
        dist.all_reduce(tensor, group=pair)
        assert tensor[0].item() == 2


@distributed(2, 3, fresh=True)
def test_timeout_names_the_operation() -> None:
    group = dist.new_group(timeout=SECOND)
    if dist.get_rank() == 1:
        stay_away()
        return
    with pytest.raises(RuntimeError, match="(?i)time|all_reduce") as caught:
        dist.all_reduce(torch.ones(10), group=group)
    text = str(caught.value).lower()
    assert "timed out" in text or "timeout" in text
    raised()


@distributed(2, fresh=True, gloo_lacks="says only that it timed out")
def test_timeout_message() -> None:
    group = dist.new_group(timeout=SECOND)
    if dist.get_rank() == 1:
        stay_away()
        return
    with pytest.raises(RuntimeError, match=r"(?is)all_reduce.*rank\W+s?\W*1\b"):
        dist.all_reduce(torch.ones(10), group=group)
    raised()


@distributed(3, fresh=True, gloo_lacks="says nothing of what other ranks did")
def test_error_says_what_every_rank_was_in() -> None:
    group = dist.new_group(timeout=SECOND if dist.get_rank() == 0 else HOUR)
    dist.broadcast(torch.ones(3), 0, group=group)
    if dist.get_rank() == 1:
        stay_away()
        return
    with pytest.raises(RuntimeError) as caught:
        dist.all_reduce(torch.ones(10), group=group)
    text = str(caught.value)
    assert "all_reduce #2 (40 bytes, Float32, Sum, " in text
    assert "rank 1: has ended broadcast #1 (12 bytes, root 0, " in text
    assert "has not called #2" in text
    raised()


@distributed(2, 3, fresh=True, gloo_lacks="has no check of what ranks call")
def test_mismatch_names_what_both_called() -> None:
    group = patient_group()
    with pytest.raises(RuntimeError) as caught:
        if dist.get_rank() == 1:
            dist.reduce(torch.ones(10), 1, op=dist.ReduceOp.MAX, group=group)
        else:
            dist.all_reduce(torch.ones(10), group=group)
    text = str(caught.value)
    assert "all_reduce #1 (40 bytes, Float32, Sum, " in text
    assert "reduce #1 (40 bytes, Float32, Max, root 1, " in text


@distributed(2, fresh=True, gloo_lacks="keeps the timeout that a group was made with for recv")
def test_set_timeout_applies() -> None:
    group = dist.new_group(timeout=HOUR)
    group.set_timeout(SECOND)
    if dist.get_rank() == 1:
        stay_away()
        return
    with pytest.raises(RuntimeError):
        dist.recv(torch.ones(10), 1, group=group)
    raised()


@distributed(2, fresh=True)
def test_timeout_of_a_future() -> None:
    group = dist.new_group(timeout=SECOND)
    if dist.get_rank() == 1:
        stay_away()
        return
    future = dist.all_reduce(torch.ones(10), group=group, async_op=True).get_future()
    with pytest.raises(RuntimeError):
        future.wait()
    raised()


@distributed(2, fresh=True, gloo_lacks="fails the operation with the wait")
def test_wait_with_a_timeout_leaves_the_operation() -> None:
    rank, _ = me()
    go = dist.new_group(backend="gloo")
    if rank == 0:
        tensor = torch.ones(10)
        work = dist.all_reduce(tensor, async_op=True)
        with pytest.raises(RuntimeError):
            work.wait(SECOND / 5)
        dist.barrier(group=go)
        work.wait()
        assert tensor[0].item() == 2
    else:
        dist.barrier(group=go)
        dist.all_reduce(torch.ones(10))


@distributed(2, 3, fresh=True, gloo_lacks="abort() does not wake who waits")
def test_abort_wakes_a_wait() -> None:
    group = patient_group()
    dist.barrier(group=group)
    if dist.get_rank() == 1:
        stay_away()
        return
    threading.Timer(0.3, group.abort).start()
    with pytest.raises(RuntimeError, match="(?i)abort"):
        dist.recv(torch.ones(10), 1, group=group)
    with pytest.raises(RuntimeError, match="(?i)abort"):
        dist.all_reduce(torch.ones(1), group=group)
    raised()


@distributed(2, fresh=True, gloo_lacks="is interrupted only at its timeout")
def test_control_c_interrupts_a_wait() -> None:
    group = patient_group()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dist.barrier(group=group)
    if dist.get_rank() == 1:
        stay_away()
        return
    for wait in (
        lambda: dist.recv(torch.ones(10), 1, group=group),
        lambda: dist.all_reduce(torch.ones(10), group=group),
    ):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            wait()
    raised()
