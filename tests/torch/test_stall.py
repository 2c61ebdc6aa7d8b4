"""A rank that does not run is given up long before the timeout; one that is only late is not.

The operations' own timeouts are far longer than a body may take.
"""

from __future__ import annotations

import datetime
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed

import rdmacoll

HOUR = datetime.timedelta(hours=1)
BOUND_S = 5
LACKS = "waits for its timeout"


def begin() -> list[int]:
    """The process ids of all ranks."""
    os.environ["RDMACOLL_STALL_TIMEOUT_MS"] = str(BOUND_S * 1000)
    dist.init_process_group("rdma", timeout=HOUR)
    pids = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(pids, torch.tensor([os.getpid()]))
    return [int(pid) for pid in pids]


@distributed(2, 3, init=False, gloo_lacks=LACKS)
def test_a_stopped_rank_is_given_up_and_learns_so_when_it_wakes() -> None:
    pids = begin()
    rank, world = me()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        with pytest.raises(RuntimeError):  # what was on its way before may still do for the first
            for _ in range(2):
                dist.all_reduce(torch.ones(10))
        dist.destroy_process_group()
        return
    with pytest.raises(rdmacoll.DeadRankError, match="rank 1 does not run") as caught:
        dist.all_reduce(torch.ones(10))
    assert caught.value.dead_ranks == (1,)
    rdmacoll.shrink_group()
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [world - 1.0] * 10
    if rank == 0:
        os.kill(pids[1], signal.SIGCONT)
    dist.destroy_process_group()


@distributed(3, init=False, gloo_lacks=LACKS)
def test_a_stopped_rank_is_given_up_by_who_shrinks_the_group() -> None:
    """No operation has waited for it: only those that are to make a smaller group do."""
    pids = begin()
    rank, world = me()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        with pytest.raises(RuntimeError, match="without this rank"):
            rdmacoll.shrink_group()
        dist.destroy_process_group()
        return
    rdmacoll.shrink_group()
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [world - 1.0] * 10
    if rank == 0:
        os.kill(pids[1], signal.SIGCONT)
    dist.destroy_process_group()


@distributed(2, init=False, gloo_lacks=LACKS)
def test_a_rank_that_computes_with_the_gil_is_waited_for() -> None:
    begin()
    rank, _ = me()
    if rank == 1:
        until = time.monotonic() + BOUND_S + 3
        while time.monotonic() < until:
            sum(range(10_000))
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0] * 10
    dist.destroy_process_group()
