"""Workers that wait for each other, and become fewer or more: in a job of three, in which a group
of two goes on in the place of all, and all in the place of these.

Gradients are integers and the rate is 1, so sums are exact. Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from rdmacoll import ps
from rdmacoll.ps.board import Generation

SGD = ps.SGD(lr=1.0)
ELEMENTS = 256 * 1024 + 5  # two shards
TWO = [0, 1]
SHORT_S, WAIT_S = 0.5, 3.0  # timeouts that are to pass; in the longer one much is done before
IDS = torch.arange(4)
_groups: list[dist.ProcessGroup] = []


def two() -> dist.ProcessGroup:
    """All ranks call it first together."""
    if not _groups:
        _groups.append(dist.new_group(TWO))
    return _groups[0]


class Training:
    """Of one parameter, of which each worker's gradient is 6 times its rank and 1."""

    def __init__(
        self, name: str, mode: Any, group: dist.ProcessGroup | None = None, timeout: float = 20.0
    ) -> None:
        self.net = nn.ParameterList([torch.zeros(ELEMENTS)])
        self.optimizer = ps.Optimizer(
            self.net.parameters(), SGD, mode, name, timeout=timeout, group=group
        )

    def hurry(self) -> None:
        """From now on: who makes it waits for others, too."""
        self.optimizer._kv._timeout = SHORT_S

    def value(self) -> float:
        (value,) = self.net[0].unique().tolist()
        return float(value)

    def step(self) -> None:
        self.net[0].grad = torch.full_like(self.net[0], 6.0 * (dist.get_rank() + 1))
        self.optimizer.step()


def steps(training: Training, count: int, group: dist.ProcessGroup | None = None) -> float:
    """All make them; the values then."""
    for _ in range(count):
        training.step()
        dist.barrier(group)  # Stale(0): nobody is a step ahead where another one looks
    return training.value()


def per_step(mode: Any, workers: int) -> float:
    gradients = [6.0 * (rank + 1) for rank in range(workers)]
    return sum(gradients) / (workers if isinstance(mode, ps.Sync) else 1)


def case_fewer_and_more_go_on(_kv: ps.KV) -> None:
    for mode in ps.Sync(), ps.Stale(0):
        group, name = two(), f"numbers in {mode}"
        first = Training(name, mode)
        value = -3 * per_step(mode, 3)
        assert steps(first, 3) == value
        if dist.get_rank() in TWO:
            fewer = Training(name, mode, group)
            assert fewer.value() == value
            dist.barrier(group)  # Stale(0): nobody makes a step before all are made
            assert steps(fewer, 2, group) == value - 2 * per_step(mode, 2)
        dist.barrier()
        with pytest.raises(ValueError, match="is none of the 2 workers that go in step"):
            first.step()  # of an earlier generation
        dist.barrier()
        value -= 2 * per_step(mode, 2)
        more = Training(name, mode)
        assert more.value() == value
        dist.barrier()
        assert steps(more, 2) == value - 2 * per_step(mode, 3)


def case_a_step_that_was_not_whole_is_made_by_those_who_go_on(_kv: ps.KV) -> None:
    group, name = two(), "not whole"
    training = Training(name, ps.Sync())
    dist.barrier()
    if dist.get_rank() in TWO:
        training.hurry()
        with pytest.raises(TimeoutError, match="rank 2 has made 0"):
            training.step()
        assert steps(Training(name, ps.Sync(), group), 1, group) == -per_step(ps.Sync(), 2)
    dist.barrier()


def case_who_waits_for_rank_0_is_told_so(_kv: ps.KV) -> None:
    group, name = two(), "without rank 0"
    Training(name, ps.Sync())
    if dist.get_rank() == 1:
        words = "rank 0 of the 2 workers .* has not begun .* the last ones were 3$"
        with pytest.raises(TimeoutError, match=words):
            Training(name, ps.Sync(), group, timeout=WAIT_S)
    dist.barrier()


def case_a_table_that_was_dropped_begins_anew(kv: ps.KV) -> None:
    name = "begins anew"
    for dropped in name, f"{name}/0", name:
        assert steps(Training(name, ps.Sync()), 1) == -per_step(ps.Sync(), 3)
        dist.barrier()
        if dist.get_rank() == 0:
            kv.drop(dropped)
        dist.barrier()


def train_rows(
    kv: ps.KV, name: str, pace: Any, count: int, group: dist.ProcessGroup | None = None
) -> None:
    """Adds so many steps of the group's workers to the rows."""
    before = kv.row_pull(name, IDS).unique().item()
    dist.barrier(group)
    bag = ps.Embedding(name, 2, pace=pace, optimizer=SGD, timeout=20.0, group=group)
    for _ in range(count):
        (bag(IDS).sum() * 6.0 * (dist.get_rank() + 1)).backward()
    bag.wait()
    dist.barrier(group)
    value = before - count * per_step(pace, dist.get_world_size(group))
    assert kv.row_pull(name, IDS).unique().tolist() == [value]
    dist.barrier(group)


def case_modules_with_other_numbers_of_workers(kv: ps.KV) -> None:
    for pace in ps.Sync(), ps.Stale(0):
        group, name = two(), f"rows in {pace}"
        kv.init_rows(name, 2, optimizer=SGD)
        train_rows(kv, name, pace, 2)
        if dist.get_rank() in TWO:
            train_rows(kv, name, pace, 3, group)
        dist.barrier()
        train_rows(kv, name, pace, 2)


def case_status_shows_steps_where_a_part_of_the_table_has_none(_kv: ps.KV) -> None:
    """Parameters without gradients lie in shards of their own."""
    net = nn.ParameterList([torch.zeros(5), torch.zeros(2 * ELEMENTS)])
    net[1].requires_grad_(False)
    optimizer = ps.Optimizer(net.parameters(), SGD, ps.Sync(), "frozen part")
    for _ in range(3):
        net[0].grad = torch.ones(5)
        optimizer.step()
    deadline, shown = time.monotonic() + 20, None
    while shown != [3, 3, 3]:  # servers say it once a second
        assert time.monotonic() < deadline, shown
        shown = next(one.steps for one in ps.stats().tables if one.name == "frozen part/0")
        time.sleep(0.1)
    dist.barrier()


def case_who_does_not_know_the_last_generation_cannot_change_it(kv: ps.KV) -> None:
    board, name = kv._worker.board, f"of rank {dist.get_rank()}"
    one, other = Generation(1, 2, (1,)), Generation(2, 3, (1,))
    assert board.change_generation(name, None, one)
    assert not board.change_generation(name, None, other)
    assert not board.change_generation(name, other, other)
    assert board.generation(name) == one
    assert board.change_generation(name, one, other)
    assert board.generation(name) == other
