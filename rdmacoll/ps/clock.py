"""Clock: how many steps each worker has made, as the servers know it. Who is late is named.

Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .kv import KV, Pending

LOOK_S = 2.0  # for who is late, after a wait in vain


class Clock:
    """It is a dense table of one element whose workers go in step. No snapshot has it."""

    def __init__(self, kv: KV, table: str, of_what: str, rank: int, workers: int) -> None:
        """of_what: whose steps they are, for errors. All workers make it. Errors: as KV.init()."""
        kv._init_clock(table, workers)
        self._kv, self._table, self._of_what, self._rank = kv, table, of_what, rank
        self.reached = kv._steps_of(table)  # of each worker, as it was made
        self._said = self.reached[rank]
        self._seen = 0  # all workers have made these
        self._pushed: Pending | None = None
        self._out = torch.empty(1)

    @property
    def said(self) -> int:
        """The last step of this worker, also of the process that it was before."""
        return self._said

    def say(self, step: int) -> None:
        """This worker has made this step: returns when the servers know it. After a TimeoutError it
        may be called again."""
        if step > self._said:
            self._pushed = self._kv._push_step(self._table, torch.zeros(1), self._rank, step)
            self._said = step
        if self._pushed is not None:
            self._pushed.wait()
            self._pushed = None

    def wait(self, step: int) -> None:
        """Until all workers have made it. Raises TimeoutError that names those that have not."""
        if step <= self._seen:
            return
        try:
            self._kv._pull_step(self._table, self._out, step).wait()
        except TimeoutError:
            late = who_is_late(self._kv, [self._table], step)
            if not late:
                raise
            raise TimeoutError(
                f"step {self._said} of {self._of_what} needs {step} steps of every rank; they have "
                f"not come in time: {late}"
            ) from None
        self._seen = step


def who_is_late(kv: KV, tables: Sequence[str], must: int) -> str:
    """The ranks that have not made this step in all of these tables, and what they have made.

    Empty: nobody is late, or the servers do not answer.
    """
    try:
        steps = [kv._steps_of(table, LOOK_S) for table in tables]
    except TimeoutError:
        return ""
    reached = [min(of_rank) for of_rank in zip(*steps, strict=True)]
    late = [f"rank {rank} has made {step}" for rank, step in enumerate(reached) if step < must]
    return ", ".join(late)
