"""What a module of rows does with the gradients that its backwards bring, as its pace says.

A step of a worker is what its backwards have brought when the next forward, wait() or step() comes.
Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from .base.modes import Async, Mode, Stale, Sync
from .clock import Clock
from .kv import KV, Pending


class OwnSteps:
    """Async: each backward is pushed at once, and nobody waits for others."""

    def __init__(self, kv: KV, table: str) -> None:
        self._kv, self._table = kv, table
        self._pushed: list[Pending] = []

    def add(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        """Of a backward: each id once, and a row for each."""
        self._pushed.append(self._kv.row_push(self._table, ids, gradient))

    def before_pull(self) -> None:
        """What a forward waits for before it pulls."""

    def step(self) -> None:
        self.wait()

    def wait(self) -> None:
        """Until the servers have all. What is not there in time is waited for the next time."""
        while self._pushed:
            try:
                self._pushed[0].wait()
            except TimeoutError:
                raise
            except Exception:
                self._pushed.pop(0)  # its part of the table is gone: others go on
                raise
            self._pushed.pop(0)


class StaleSteps(OwnSteps):
    """Stale: likewise; a step is said to the others once the servers have its pushes."""

    def __init__(self, kv: KV, table: str, pace: Stale, rank: int, workers: int) -> None:
        super().__init__(kv, table)
        self._pace = pace
        self._clock = Clock(kv, f"{table}/steps", f"{table!r}", rank, workers)
        self._step = self._clock.said
        self._has_begun = False  # a backward has come since the last step

    def add(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        self._has_begun = True
        super().add(ids, gradient)

    def before_pull(self) -> None:
        self.wait()

    def step(self) -> None:
        self._finish()  # the step before may not have been seen to end
        self._step += 1
        self._has_begun = False
        self._finish()

    def wait(self) -> None:
        if self._has_begun:
            self.step()
        else:
            self._finish()

    def _finish(self) -> None:
        super().wait()
        self._clock.say(self._step)
        self._clock.wait(self._pace.must_have(self._step))


def check_pace(pace: object) -> None:
    """Raises TypeError for what is none."""
    if not isinstance(pace, Mode):
        what = pace.__name__ if isinstance(pace, type) else type(pace).__name__
        raise TypeError(f"pace is {what}; give ps.Async(), ps.Sync() or ps.Stale(n)")
    if isinstance(pace, Sync):
        raise NotImplementedError("rows have no pace ps.Sync() yet; give ps.Stale(0)")


def steps_of(kv: KV, table: str, pace: Mode, group: dist.ProcessGroup | None) -> OwnSteps:
    """Raises ValueError where the first worker has said another pace; besides as KV.init()."""
    workers = dist.get_world_size(group)
    said = f"{pace}" if isinstance(pace, Async) else f"{pace} of {workers} workers"
    first = kv._worker.board.first_word(f"pace/{table}", said)
    if first != said:
        raise ValueError(
            f"pace={said}: the worker that was first to make {table!r} has said {first}; give all "
            "the same one, and let as many of them take part as at first"
        )
    if not isinstance(pace, Stale):
        return OwnSteps(kv, table)
    return StaleSteps(kv, table, pace, dist.get_rank(group), workers)
