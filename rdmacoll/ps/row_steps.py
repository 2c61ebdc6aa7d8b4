"""What a module of rows does with the gradients that its backwards bring, as its pace says.

A step of a worker ends with the first forward, wait() or skip() after a backward or a skip().
Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from .base.modes import Async, Mode, Stale, Sync
from .base.pending import Pending, finish
from .base.row_exchange import Rows, added, exchanged
from .board import PACE
from .clock import clocks
from .kv import KV


class OwnSteps:
    """Async: each backward is pushed at once, and nobody waits for others."""

    def __init__(self, kv: KV, table: str) -> None:
        self._kv, self._table = kv, table
        self._pushed: list[Pending] = []
        self.lr: float | None = None  # of the gradients that come

    def add(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        """Of a backward: each id once, and a row for each."""
        self._push(ids, gradient, self.lr)

    def _push(self, ids: torch.Tensor, gradient: torch.Tensor, lr: float | None) -> None:
        self._pushed.append(self._kv.row_push(self._table, ids, gradient, lr=lr))

    def before_pull(self) -> None:
        """What a forward waits for before it pulls."""

    def skip(self) -> None:
        """A step in which nothing comes."""
        self.wait()

    def wait(self) -> None:
        """Until the servers have all. What is not there in time is waited for the next time."""
        finish(self._pushed)


class CountedSteps(OwnSteps):
    """Of a worker that waits for others at the end of each step.

    wait() may be called again after a TimeoutError: what is done of the end is not done twice.
    """

    def __init__(self, kv: KV, table: str, step: int) -> None:
        """step: the last one that this worker has made."""
        super().__init__(kv, table)
        self._step = step
        self._has_begun = False  # the next one

    def add(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        self._has_begun = True
        self._take(ids, gradient)

    def skip(self) -> None:
        self.wait()
        self._has_begun = True

    def before_pull(self) -> None:
        self.wait()

    def wait(self) -> None:
        self._finish()  # the step before may not have been seen to end
        if self._has_begun:
            self._has_begun = False
            self._step += 1
            self._end()
            self._finish()

    def _take(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        super().add(ids, gradient)

    def _end(self) -> None:
        """Of a step: nothing more comes for it."""

    def _finish(self) -> None:
        """The end of the last step."""
        super().wait()


class StaleSteps(CountedSteps):
    """Stale: backwards are pushed at once; a step is said to the others once servers have it."""

    def __init__(self, kv: KV, table: str, pace: Stale, group: dist.ProcessGroup | None) -> None:
        self._pace = pace
        (self._clock,) = clocks(kv, table, ["steps"], group)
        super().__init__(kv, table, self._clock.said)

    def _finish(self) -> None:
        super()._finish()
        self._clock.say(self._step)
        self._clock.wait(self._pace.must_have(self._step))


class SyncSteps(CountedSteps):
    """Sync: gradients of a step are kept until it ends. Then all workers add them up, and each
    pushes the means of the rows that it owns."""

    def __init__(self, kv: KV, table: str, dim: int, group: dist.ProcessGroup | None) -> None:
        self._dim, self._group, self._workers = dim, group, dist.get_world_size(group)
        self._came, self._made = clocks(kv, table, ["came", "steps"], group)
        # Workers that were started again lack what they had brought of a step that was under way.
        # If one has made it, it is over for all. They agree on it, as nobody makes another step
        # without the rest.
        super().__init__(kv, table, max(self._made.reached))
        self._made.say(self._step)
        self._brought: list[Rows] = []
        self._lr: float | None = None  # of the step that is under way, or ends
        self._mine: list[Rows] | None = None  # of the step that ends, until it is exchanged

    def _take(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        self._brought.append((ids, gradient))
        self._lr = self.lr

    def skip(self) -> None:
        super().skip()
        self._lr = self.lr

    def _end(self) -> None:
        self._mine, self._brought = self._brought, []

    def _finish(self) -> None:
        if self._mine is not None:
            self._came.say(self._step)
            self._came.wait(self._step)
            ids, sums = exchanged(added(self._mine, self._dim), self._group)
            self._mine = None
            self._push(ids, sums / self._workers, self._lr)
        super()._finish()
        self._made.say(self._step)
        self._made.wait(self._step)

    def _push(self, ids: torch.Tensor, means: torch.Tensor, lr: float | None) -> None:
        if len(ids) == 0:
            return
        try:
            super()._push(ids, means, lr)
        except TimeoutError as error:
            raise RuntimeError(
                f"step {self._step} of {self._table!r} is in some of its rows and not in others: a "
                f"server had no room for it in time; restore a snapshot ({error})"
            ) from error


def check_pace(pace: object) -> None:
    """Raises TypeError for what is none."""
    if not isinstance(pace, Mode):
        what = pace.__name__ if isinstance(pace, type) else type(pace).__name__
        raise TypeError(f"pace is {what}; give ps.Async(), ps.Sync() or ps.Stale(n)")


def steps_of(kv: KV, table: str, dim: int, pace: Mode, group: dist.ProcessGroup | None) -> OwnSteps:
    """Raises ValueError where the first worker has said another pace; besides as KV.init()."""
    if not isinstance(pace, Async):
        kv._worker.check_rank(f"pace={pace}", "ps.Async()")
    first = kv._worker.board.first_word(PACE, table, f"{pace}")
    if first != f"{pace}":
        raise ValueError(
            f"pace={pace}: the worker that was first to make {table!r} has said {first}; give all "
            "the same one"
        )
    if isinstance(pace, Async):
        return OwnSteps(kv, table)
    if isinstance(pace, Sync):
        return SyncSteps(kv, table, dim, group)
    return StaleSteps(kv, table, pace, group)
