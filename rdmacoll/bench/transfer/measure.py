"""Rounds, times and CPU seconds of transfers."""

import math
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from ..frame.job import WrongResult
from ..frame.rounds import Rounds, settle
from ..measure import TURN_S
from .pair import Way

MOST_SENDS = 2000
SENDS_TO_LEARN = 20


@dataclass
class Turns:
    """What a process has measured of its way on one size. Times are the sender's alone."""

    form: str = ""
    sends: int = 1  # of a turn
    sends_us: list[float] = field(default_factory=list)  # the median of each turn
    cpu_us: list[float] = field(default_factory=list)  # of this process, per transfer
    counted: dict[str, int] = field(default_factory=dict)  # in all turns


class Meter:
    """`number` is that of this process's way, of so many; `control` is a group of all processes."""

    def __init__(
        self, way: Way, name: str, number: int, ways: int, control: dist.ProcessGroup
    ) -> None:
        self._way, self._name = way, name
        self._rounds = Rounds(number, ways, control)

    def measure(self, size_bytes: int, rounds: int) -> Turns:
        self._way.prepare(size_bytes)
        turns = Turns()
        self._rounds.in_turns(0, lambda: self._warm_up(turns))
        self._rounds.in_turns(0, lambda: self._check(size_bytes, seed=1))
        for number in range(rounds):
            self._rounds.in_turns(number, lambda: self._turn(turns))
        self._rounds.in_turns(0, lambda: self._check(size_bytes, seed=2))
        return turns

    def _warm_up(self, turns: Turns) -> None:
        """Also: how many sends fit into a turn. Of slow ones one has to do."""
        with self._on_own_cores():
            if self._way.pair.sends:
                self._way.choose_form()
            turns.form = self._way.form
            self._transfer(1)
            quickest_us = math.inf
            for count in (1, 3, SENDS_TO_LEARN):
                mine = min(self._transfer(count), default=0.0)
                quickest_us = min(quickest_us, max(mine, self._way.pair.swap(mine)))
                turns.sends = max(1, min(MOST_SENDS, int(TURN_S * 1e6 / quickest_us)))
                if turns.sends < SENDS_TO_LEARN:
                    break

    @contextmanager
    def _on_own_cores(self) -> Iterator[None]:
        """For a turn the threads of both programs are bound to a core each, those of gRPC and the
        like to none. On a machine with other work the system may leave two that it has woken
        together on one core for ever."""
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[0 if self._way.pair.sends else -1]})
        settle()
        self._way.pair.meet()  # or the first would count what it waits for the second
        yield
        os.sched_setaffinity(0, cores)

    def _turn(self, turns: Turns) -> None:
        with self._on_own_cores():
            before, cpu_ns = self._way.counters(), time.process_time_ns()
            sends_us = self._transfer(1 + turns.sends)
            cpu_us = (time.process_time_ns() - cpu_ns) / 1e3
        for what, count in self._way.counters().items():
            turns.counted[what] = turns.counted.get(what, 0) + count - before[what]
        turns.cpu_us.append(cpu_us / (1 + turns.sends))
        if sends_us:  # of the first the caches are another's
            turns.sends_us.append(statistics.median(sends_us[1:]))

    def _transfer(self, count: int) -> list[float]:
        """The microseconds of each, at the sender."""
        times_us = []
        if self._way.pair.sends:
            for _ in range(count):
                began = time.perf_counter_ns()
                self._way.send()
                times_us.append((time.perf_counter_ns() - began) / 1e3)
        else:
            self._way.serve(count)
        self._way.pair.meet()
        return times_us

    def _check(self, size_bytes: int, seed: int) -> None:
        """Raises WrongResult unless every byte is where it belongs."""
        generator = torch.Generator().manual_seed(seed)
        wanted = torch.randint(0, 256, (size_bytes,), dtype=torch.uint8, generator=generator)
        if self._way.pair.sends:
            self._way.source.copy_(wanted)
        self._transfer(1)
        if self._way.pair.sends or torch.equal(self._way.target, wanted):
            return
        at = int((self._way.target != wanted).nonzero()[0])
        raise WrongResult(
            f"{self._name} transfers something else: of {size_bytes} bytes byte {at} is "
            f"{self._way.target[at].item()}, not {wanted[at].item()}"
        )
