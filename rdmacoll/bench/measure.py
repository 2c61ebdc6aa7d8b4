"""Rounds and times. A round gives every system one turn of a few dozen milliseconds, so that what
the machine does meanwhile meets all alike; who begins changes from round to round.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from .case import Case
from .frame.job import ROOT, watch
from .frame.rounds import settle
from .operations import OPERATIONS
from .result import Row, Times
from .torch_calls import Call

TURN_S = 0.05
MAX_CALLS = 400
CALLS_TO_LEARN = 5
FAKE = "fake"  # torch's backend that does nothing, so that its results are wrong


@dataclass(frozen=True)
class System:
    name: str
    prepare: Callable[[Case], Call]


class Meter:
    """`control` is a group of all ranks beside those that are measured."""

    def __init__(
        self, systems: list[System], control: dist.ProcessGroup, rounds: int, check: bool
    ) -> None:
        self._systems, self._control = systems, control
        self._rounds, self._check_results = rounds, check

    def measure(self, case: Case) -> Row:
        calls = {system.name: system.prepare(case) for system in self._systems}
        names = list(calls)
        case.fill()  # memory that was never written is faster to read
        self._check(case, calls)
        counts = {name: self._warm_up(calls[name]) for name in names}
        turns: dict[str, list[list[float]]] = {name: [] for name in names}
        for number in range(self._rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                self._meet()
                settle()
                turns[name].append(times_us(calls[name], counts[name]))
        self._check(case, calls)
        measured = {name: self._gather(turns[name]) for name in names}
        return summarize(case.operation, case.bytes, measured)

    def _check(self, case: Case, calls: dict[str, Call]) -> None:
        """Before and after all turns: the first calls and later ones may take other ways."""
        for name, call in calls.items() if self._check_results else ():
            if name == FAKE:
                continue
            case.fill()
            self._meet()
            call()
            case.check(name)

    def _warm_up(self, call: Call) -> int:
        """How many calls fit into a turn. Of slow ones two have to do."""
        count = self._calls_in_a_turn(call, 1)
        return count if count < CALLS_TO_LEARN else self._calls_in_a_turn(call, CALLS_TO_LEARN)

    def _calls_in_a_turn(self, call: Call, learn_from: int) -> int:
        """The same on every rank."""
        self._meet()
        mine = min(times_us(call, learn_from))
        slowest = torch.tensor(mine, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=self._control)
        return max(1, min(MAX_CALLS, int(TURN_S * 1e6 / slowest.item())))

    def _meet(self) -> None:
        watch()
        dist.barrier(group=self._control)

    def _gather(self, turns: list[list[float]]) -> torch.Tensor:
        """A row per rank: the median of each turn, then the 99th percentile of all calls."""
        everything = sorted(time_us for turn in turns for time_us in turn)
        p99 = everything[-(-99 * len(everything) // 100) - 1]
        mine = torch.tensor([*map(statistics.median, turns), p99], dtype=torch.float64)
        all_ranks = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(all_ranks, mine, group=self._control)
        return torch.stack(all_ranks)


def summarize(operation: str, size_bytes: int, measured: dict[str, torch.Tensor]) -> Row:
    """From a table per system as _gather makes it."""
    slowest = {name: ranks[:, :-1].amax(dim=0) for name, ranks in measured.items()}
    first = next(iter(slowest.values()))
    systems = {}
    for name, ranks in measured.items():
        p50_us = slowest[name].median().item()
        algbw = size_bytes / p50_us / 1e3
        systems[name] = Times(
            p50_us=p50_us,
            p99_us=ranks[:, -1].max().item(),
            root_p50_us=ranks[ROOT, :-1].median().item(),
            algbw_gb_per_s=algbw,
            busbw_gb_per_s=algbw * OPERATIONS[operation].bus(len(ranks)),
            times_slower=(slowest[name] / first).median().item(),
            turns_us=slowest[name].tolist(),
        )
    return Row(operation, size_bytes, systems)


def times_us(call: Call, count: int) -> list[float]:
    call()  # not timed: the ranks come from a barrier at different times, caches are another's
    times = []
    for _ in range(count):
        began = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - began) / 1e3)
    return times
