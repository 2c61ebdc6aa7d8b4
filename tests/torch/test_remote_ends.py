"""Remote memory where processes end, or are no longer the one that it is of."""

from __future__ import annotations

import gc
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from test_remote import LACKS, exposed, others, values

from rdmacoll import remote


@distributed(2, gloo_lacks=LACKS, one_host=True)
def test_a_forked_child_leaves_it_to_its_parent() -> None:
    rank, _ = me()
    with exposed(values(rank), "of the parent") as (memory, _):
        there = remote.open("of the parent", on=1 - rank)
        child = os.fork()
        if child == 0:
            refused = False
            try:
                there.read(timeout=1)
            except RuntimeError as error:
                refused = "was forked" in str(error)
            del there, memory
            gc.collect()
            os._exit(0 if refused else 1)
        assert os.waitpid(child, 0)[1] == 0
        dist.barrier()
        assert torch.equal(there.read(), values(1 - rank))


@distributed(2, dies=(1,), gloo_lacks=LACKS, one_host=True)
def test_inside_a_host_the_death_of_an_owner_is_noticed_before_a_second_is_over() -> None:
    """Which is in milliseconds: who waits for an answer hears of the end, not of his timeout."""
    rank, _ = me()
    memory = remote.empty_like(values(rank)).copy_(values(rank))
    remote.expose(memory, "mortal")
    there = remote.open("mortal", on=1 - rank)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(remote.PeerError, match="rank 1 is gone"):
        while True:
            there.fence(timeout=1)


@distributed(2, init=False, gloo_lacks=LACKS, one_host=True)
def test_a_stopped_owner_costs_a_reader_its_timeout_and_no_more() -> None:
    """Over tcp, where the owner's process moves the bytes."""
    rank = int(os.environ["RANK"])
    os.environ |= {"RDMACOLL_HOST_ID": f"host{rank}", "RDMACOLL_TRANSPORT": "tcp"}
    dist.init_process_group("rdma")
    memory = remote.empty(1 << 22, access="rw").fill_(rank)
    exposure = remote.expose(memory, "stopped", access="rw")
    there = remote.open("stopped", on=1 - rank)
    published = remote.publish({"x": memory.clone()}, "versions")
    published.update()
    subscribed = remote.subscribe("versions", on=1 - rank)
    first = subscribed.read()["x"]
    pids = [0, 0]
    dist.all_gather_object(pids, os.getpid())
    if rank == 0:
        os.kill(pids[1], signal.SIGSTOP)
        says = "the read of 'stopped' of rank 1 has not ended within 300 ms"
        read = there.read_async(timeout=0.3)
        for _ in range(2):
            with pytest.raises(TimeoutError, match=says):
                read.wait()
        with pytest.raises(TimeoutError, match=says):
            there.read(timeout=0.3)
        with pytest.raises(TimeoutError, match="the read of 'versions' of rank 1"):
            subscribed.read(timeout=0.3)
        with pytest.raises(TimeoutError, match="within 300 ms.*rank 1"):
            remote.open("stopped", on=1, timeout=0.3)
        os.kill(pids[1], signal.SIGCONT)
        assert (read.wait(timeout=20) == 1).all()
        again = subscribed.read()["x"]
        assert (again == 1).all()
        assert again.data_ptr() != first.data_ptr()  # where the other one may still read into
        there[-1:].write(torch.full((1,), 7.0), notify=1)
    else:
        assert exposure.wait_notify(1) == 1
        assert memory[-1] == 7
    wait_for_openings(2)  # not what was opened too late
    dist.barrier()


def wait_for_openings(count: int) -> None:
    end = time.monotonic() + 20
    while remote.stats()["openings"] != count and time.monotonic() < end:
        time.sleep(0.01)
    assert remote.stats()["openings"] == count


def raises_peer_error(there: remote.RemoteTensor) -> bool:
    """Whether reading does, soon."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            there.read()
        except remote.PeerError:
            return True
        time.sleep(0.001)
    return False


@distributed(3, 4, dies=(1,), gloo_lacks=LACKS)
def test_the_death_of_an_owner_fails_only_what_is_open_there() -> None:
    rank, _ = me()
    memory = remote.empty_like(values(rank)).copy_(values(rank))
    exposure = remote.expose(memory, "mortal")
    opened = {other: remote.open("mortal", on=other) for other in others()}
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    assert raises_peer_error(opened[1])
    with pytest.raises(remote.PeerError):
        remote.open("mortal", on=1, timeout=5)
    for other in set(opened) - {1}:
        assert torch.equal(opened[other].read(), values(other))
    meet(set(opened) - {1})
    assert exposure.notified == 0


def meet(whom: set[int]) -> None:
    """By remote memory alone: the group may have failed."""
    flags = remote.expose(remote.empty(1, access="rw"), "flag", access="rw")
    for other in whom:
        remote.open("flag", on=other).write(torch.ones(1), notify=1)
    flags.wait_notify(1)


@distributed(3, dies=(2,), gloo_lacks=LACKS)
def test_the_death_of_a_reader_harms_nobody() -> None:
    rank, _ = me()
    memory = remote.empty(1 << 20).fill_(rank)
    exposure = remote.expose(memory, "read")
    opened = [remote.open("read", on=other) for other in others()]
    dist.barrier()
    if rank == 2:
        works = [there.read_async() for there in opened for _ in range(8)]
        assert works
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_openings(1)
    there = opened[0] if rank == 0 else opened[-1]
    assert (there.read() == 1 - rank).all()
    meet({1 - rank})
    exposure.revoke()


@distributed(2, dies=(1,), gloo_lacks=LACKS)
def test_the_death_of_a_writer_leaves_what_it_has_notified() -> None:
    rank, _ = me()
    memory = remote.empty(1 << 20, access="rw")
    exposure = remote.expose(memory, "written", access="rw")
    there = remote.open("written", on=1 - rank)
    there.write(torch.ones(1 << 20), notify=1 + rank)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    assert raises_peer_error(there)
    end = time.monotonic() + 20
    while remote.stats()["openings"] > 0 and time.monotonic() < end:
        time.sleep(0.001)
    assert remote.stats()["openings"] == 0
    assert exposure.notified == 2 and (memory == 1).all()
