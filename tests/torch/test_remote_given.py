"""What a process gives to one other: memory that it lends, tensors that it posts; and how one is
cut off that does not give back what it had open."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from test_remote import LACKS, WORLDS, others, values

from rdmacoll import remote

SOON_S = 20


def soon(is_true: Callable[[], bool]) -> bool:
    end = time.monotonic() + SOON_S
    while not is_true() and time.monotonic() < end:
        time.sleep(0.001)
    return is_true()


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_memory_of_others_is_a_device() -> None:
    rank, world = me()
    size = values(rank).nbytes
    remote.lend((world - 1) * size)
    there = {other: remote.device(on=other).empty_like(values(rank)) for other in others()}
    for other, memory in there.items():
        assert not memory.read().any()
        memory.write(values(rank + other))
        memory[3:5].write(torch.zeros(2, memory.shape[1]))
    for other, memory in there.items():
        expected = values(rank + other)
        expected[3:5] = 0
        assert torch.equal(memory.read(), expected)
    dist.barrier()
    assert remote.stats()["lent_bytes"] == (world - 1) * size
    with pytest.raises(OSError, match="others have .* more are not there"):
        remote.device(on=others()[0]).empty(1)
    dist.barrier()
    del memory
    there.clear()
    gc.collect()
    assert soon(lambda: remote.stats()["lent_bytes"] == 0)
    dist.barrier()
    again = remote.device(on=others()[0]).empty(2, 3, dtype=torch.int8)
    assert again.read().dtype == torch.int8 and again.access == "rw"
    dist.barrier()
    remote.lend(0)


@distributed(2, 3, gloo_lacks=LACKS)
def test_nothing_is_lent() -> None:
    dist.barrier()
    with pytest.raises(TimeoutError, match="has lent no memory within 100 ms"):
        remote.device(on=others()[0]).empty(1, timeout=0.1)
    dist.barrier()


def letters(rank: int) -> list[torch.Tensor]:
    in_place = remote.empty_like(values(rank)).copy_(values(rank))
    return [
        values(rank),
        torch.tensor(rank),
        torch.empty(0, 3, dtype=torch.int16),
        torch.full((rank + 1, 5), rank, dtype=torch.bfloat16),
        in_place[7:11],
        torch.arange(100_000 + rank),
    ]


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_mailbox() -> None:
    """The tensor behind each one says who has posted it."""
    rank, world = me()
    box = remote.mailbox("box")
    works = []
    for other in others():
        to = remote.open_mailbox("box", on=other)
        for letter in letters(rank):
            works += [to.put_async(torch.tensor([rank])), to.put_async(letter)]
    come: dict[int, list[torch.Tensor]] = {other: [] for other in others()}
    waiting: list[torch.Tensor] = []
    for _ in range(2 * len(letters(rank)) * (world - 1)):
        waiting.append(box.get())
    assert len(waiting) == len(works)
    for work in works:
        work.wait()
    expected = {other: letters(other) for other in others()}
    # Those of one sender come in their order, so of each kind they do, too.
    for tensor in waiting:
        if tensor.shape != (1,):
            same = [o for o in others() if any(equal(tensor, one) for one in expected[o])]
            assert same, tensor
            come[same[0]].append(tensor)
    assert sum(map(len, come.values())) == len(letters(rank)) * (world - 1)
    assert remote.stats()["posted"] == 0
    with pytest.raises(TimeoutError, match="nobody has posted to 'box' within 10 ms"):
        box.get(timeout=0.01)
    dist.barrier()
    box.close()
    dist.barrier()


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)


@distributed(2, gloo_lacks=LACKS)
def test_one_senders_letters_come_in_order() -> None:
    rank, _ = me()
    if rank == 0:
        box = remote.mailbox("in order")
        for i in range(300):  # more than wait there at a time
            assert torch.equal(box.get(), torch.full((i % 7 + 1,), i))
        box.close()
    else:
        to = remote.open_mailbox("in order", on=0)
        works = [to.put_async(torch.full((i % 7 + 1,), i)) for i in range(300)]
        for work in works:
            work.wait()
    dist.barrier()


@distributed(2, gloo_lacks=LACKS)
def test_a_mailbox_that_is_closed() -> None:
    rank, _ = me()
    if rank == 0:
        box = remote.mailbox("closed")
        dist.barrier()
        dist.barrier()
        box.close()
        with pytest.raises(ValueError, match="no mailbox of name='closed'"):
            box.get()
        dist.barrier()
    else:
        dist.barrier()
        to = remote.open_mailbox("closed", on=0)
        work = to.put_async(torch.ones(3))
        dist.barrier()
        with pytest.raises(remote.RevokedError, match="closed 'closed' and has not taken"):
            work.wait()
        dist.barrier()
        with pytest.raises(TimeoutError, match="rank 0 has no such mailbox"):
            to.put(torch.ones(3), timeout=0.1)
    dist.barrier()


@distributed(2, gloo_lacks=LACKS)
def test_a_writer_that_is_stopped_is_cut_off() -> None:
    """What it writes when it goes on changes nothing at the owner, and raises at the writer."""
    rank, _ = me()
    size = 64 << 20
    pids: list[int] = [0, 0]
    dist.all_gather_object(pids, os.getpid())
    if rank == 0:
        memory = remote.empty(size, dtype=torch.uint8, access="rw")
        exposure = remote.expose(memory, "late", access="rw")
        dist.barrier()
        os.kill(pids[1], signal.SIGSTOP)
        try:
            late = exposure.revoke(timeout=0.3)
            assert len(late) == 1
            assert "rank 1" in late[0] or f"process {pids[1]} of" in late[0]  # as it was met
            memory.fill_(1)
        finally:
            os.kill(pids[1], signal.SIGCONT)
        anew = remote.expose(memory, "next", access="rw")
        anew.wait_notify(1, timeout=SOON_S)
        assert memory[0] == 3 and bool((memory[1:] == 1).all())
        assert anew.revoke() == []
    else:
        there = remote.open("late", on=0)
        data = torch.full((size,), 2, dtype=torch.uint8)
        dist.barrier()
        with pytest.raises(remote.RevokedError, match="has taken 'late' back"):
            for _ in range(10_000):
                there.write(data)
        again = remote.open("next", on=0)
        again[:1].write(torch.full((1,), 3, dtype=torch.uint8), notify=1)
    dist.barrier()


@distributed(2, gloo_lacks=LACKS)
def test_wrong_arguments() -> None:
    rank, world = me()
    box = remote.mailbox("taken")
    for call, error, says in (
        (lambda: remote.lend(-1), ValueError, "limit_bytes=-1; give 0 or more"),
        (lambda: remote.lend("8G"), TypeError, "limit_bytes is a str; give a number of bytes"),
        (lambda: remote.device(on=rank), ValueError, "is this rank itself"),
        (lambda: remote.device(), ValueError, "give one of the two"),
        (lambda: remote.device(on=1 - rank).empty(-1), ValueError, "negative dimension"),
        (lambda: remote.device(on=1 - rank).empty(2**62), ValueError, "is the most"),
        (lambda: remote.empty(2**62), ValueError, "is the most"),
        (lambda: remote.mailbox("taken"), ValueError, "has a mailbox of name='taken' already"),
        (lambda: remote.mailbox(""), ValueError, "a name has 1 to 255"),
        (lambda: remote.mailbox(3), TypeError, "name is a int"),
        (lambda: remote.open_mailbox("taken", on=world), ValueError, "is not a rank"),
        (lambda: remote.open_mailbox("taken", on=1 - rank).put([1]), TypeError, "give a tensor"),
        (
            lambda: remote.open_mailbox("taken", on=1 - rank).put(torch.ones(4, 4).t()[:2]),
            ValueError,
            "not contiguous",
        ),
    ):
        with pytest.raises(error, match=says):
            call()
    dist.barrier()
    box.close()
