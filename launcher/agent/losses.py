"""The ranks of this host that failed, and which of them are started again alone.

All agents hold the same count of restarts: they answer the failures of the same tables in the same
order.
Floor: launcher/agent. Thread: the agent's.
"""

from collections.abc import Iterable, Sequence

from rdmacoll.launcher.base.cause import Cause, Why
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.report import Failure


class Losses:
    """From one start of all ranks to their end."""

    def __init__(self, job: Job, agent: int, restarts: int) -> None:
        self._agent = agent
        self._limit = job.max_restarts if job.elastic else restarts
        self._answered = [0] * len(job.hosts)  # failures that have their answer, by host
        self._missing: dict[int, Failure] = {}
        self.restarts = restarts  # of the whole job, those before this start as well
        self.failures: list[Failure] = []

    def add(self, failure: Failure) -> None:
        self.failures.append(failure)
        self._missing[failure.rank] = failure

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
        if not self._missing:
            return Cause()
        first = min(self._missing.values(), key=lambda failure: failure.time_ns)
        return Cause(Why.FAILED, first.rank, first.returncode, first.time_ns)

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
