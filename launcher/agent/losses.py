"""The ranks of this host that failed, and which of them are started again alone; lost hosts.

All agents hold the same count of restarts: they answer the failures of the same tables in the same
order.
Floor: launcher/agent. Thread: the agent's.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rdmacoll.launcher.base.cause import Cause, Why
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.report import Failure


@dataclass(frozen=True)
class Counts:
    """What all agents count alike."""

    restarts: int  # of the whole job, those before this start as well
    answered: list[int]  # failures that have their answer, by host
    lost: list[bool]  # whether a host is, by host
    times_lost: list[int]  # how often it was, by host


class Losses:
    """From one start of all ranks to their end."""

    def __init__(self, job: Job, agent: int, restarts: int) -> None:
        self._agent = agent
        self._limit = job.max_restarts if job.elastic else restarts
        self._answered = [0] * len(job.hosts)
        self._lost = [False] * len(job.hosts)
        self.times_lost = [0] * len(job.hosts)
        self._missing: dict[int, Cause] = {}
        self.restarts = restarts
        self.failures: list[Failure] = []

    @property
    def counts(self) -> Counts:
        by_host = list(self._answered), list(self._lost), list(self.times_lost)
        return Counts(self.restarts, *by_host)

    def take_over(self, counts: Counts, own: Sequence[int]) -> None:
        """For an agent that comes in the place of a lost one: its ranks are not back yet."""
        self.restarts = counts.restarts
        self._answered, self._lost = list(counts.answered), list(counts.lost)
        self.times_lost = list(counts.times_lost)
        self._answered[self._agent], self._lost[self._agent] = 0, False
        lost = Cause(Why.HOST_LOST, own[0], 0, time.time_ns())
        self._missing = dict.fromkeys(own, lost)

    def add(self, failure: Failure) -> None:
        self.failures.append(failure)
        cause = Cause(Why.FAILED, failure.rank, failure.returncode, failure.time_ns)
        self._missing[failure.rank] = cause

    def back(self, ranks: Iterable[int]) -> None:
        """They are members of the group again."""
        for rank in ranks:
            self._missing.pop(rank, None)

    @property
    def missing(self) -> int:
        """How many of this host's ranks have failed and are not back."""
        return len(self._missing)

    @property
    def unanswered(self) -> set[int]:
        """Ranks of this host that may yet be started again."""
        return {failure.rank for failure in self.failures[self._answered[self._agent] :]}

    @property
    def cause(self) -> Cause:
        """The first of the failures that still count."""
        causes = self._missing.values()
        return min(causes, key=lambda cause: cause.time_ns) if causes else Cause()

    def answer_lost(self, lost: Sequence[bool], may_restart: bool) -> list[tuple[int, int | None]]:
        """The hosts that are newly lost in a table, with the numbers of restarts as below."""
        answers: list[tuple[int, int | None]] = []
        for host, is_lost in enumerate(lost):
            if is_lost and not self._lost[host]:
                self.times_lost[host] += 1
                granted = may_restart and self.restarts < self._limit
                self.restarts += granted
                answers.append((host, self.restarts if granted else None))
            self._lost[host] = is_lost
        return answers

    def answer(
        self, failures: Sequence[int], may_restart: bool
    ) -> list[tuple[Failure, int | None]]:
        """Those of this host that are new in a table, of so many failures on each host.

        With the number of the restart that each of them gets, or None where there is none left.
        """
        answers: list[tuple[Failure, int | None]] = []
        for host, count in enumerate(failures):
            for index in range(self._answered[host], count):
                granted = may_restart and self.restarts < self._limit
                self.restarts += granted
                if host == self._agent:
                    answers.append((self.failures[index], self.restarts if granted else None))
            self._answered[host] = count
        return answers
