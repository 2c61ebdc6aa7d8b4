"""barrier and monitored_barrier: nobody leaves before the last has come."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from failing import raised, stay_away
from harness import ALL_WORLDS, distributed
from world import backend


def monitored_barrier(**options: Any) -> None:
    """torch gates dist.monitored_barrier by the name gloo; the group's own method is free."""
    group: Any = dist.group.WORLD
    group.monitored_barrier(**options)


def last_arrival_before_first_departure(barrier: Callable[[], Any], late: int) -> None:
    rank, world = me()
    if rank == late:
        time.sleep(0.1)
    arrival = time.monotonic()  # one clock for all processes of a host
    barrier()
    departure = time.monotonic()
    times: list[tuple[float, float]] = [(0.0, 0.0)] * world
    dist.all_gather_object(times, (arrival, departure))
    assert max(a for a, _ in times) <= min(d for _, d in times), times


@distributed(*ALL_WORLDS)
def test_barrier() -> None:
    _, world = me()
    for late in range(world):
        last_arrival_before_first_departure(dist.barrier, late)
        last_arrival_before_first_departure(lambda: dist.barrier(async_op=True).wait(), late)


@distributed(*ALL_WORLDS)
def test_monitored_barrier() -> None:
    _, world = me()
    for late in {0, world - 1}:
        last_arrival_before_first_departure(
            lambda: monitored_barrier(timeout=datetime.timedelta(seconds=20)), late
        )


@distributed(2)
def test_where_monitored_barrier_is_found() -> None:
    """As README says, the group and the backend have the method. The function of torch 2.13 is for
    gloo alone, and says so."""
    assert dist.group.WORLD is not None
    cpu: Any = dist.group.WORLD._get_backend(torch.device("cpu"))
    monitored_barrier()
    cpu.monitored_barrier(datetime.timedelta(seconds=20), wait_all_ranks=True)
    if backend() != "gloo":
        with pytest.raises(ValueError, match="only implemented for GLOO"):
            dist.monitored_barrier()


@distributed(3, 4, fresh=True)
def test_monitored_barrier_names_the_missing() -> None:
    rank, _ = me()
    if rank == 2:
        stay_away()
        return
    second = datetime.timedelta(seconds=1)
    with pytest.raises(RuntimeError, match="[Rr]ank.*2" if rank == 0 else ""):
        monitored_barrier(timeout=second)
    raised()


@distributed(4, fresh=True)
def test_monitored_barrier_names_all_missing() -> None:
    rank, _ = me()
    if rank in (1, 3):
        stay_away(absent=2)
        return
    second = datetime.timedelta(seconds=1)
    with pytest.raises(RuntimeError, match="(?s)1.*3" if rank == 0 else ""):
        monitored_barrier(timeout=second, wait_all_ranks=True)
    raised()


@distributed(2, 3)
def test_many() -> None:
    for _ in range(300):
        dist.barrier()
