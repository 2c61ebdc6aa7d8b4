"""Who goes in step, and how many steps each of them has made, as servers know it. Who is late is
named.

Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist

from ..failure import DeadRankError, dead_ranks
from .base.pending import Pending, finish
from .board import PAUSE_S, Generation
from .kv import KV

LATE_S = 2.0  # to look for who is late, after a wait in vain


@dataclass(frozen=True)
class Member:
    """This worker, of those that go in step."""

    name: str  # of what they go in step in
    group: dist.ProcessGroup | None
    rank: int
    workers: int
    generation: int

    def finish(
        self, kv: KV, pulled: list[Pending], tables: Sequence[str], must: int, of_step: str
    ) -> None:
        """finish() of pulls that wait until all workers have made this step in these tables.

        of_step: what needs it, for errors. Raises TimeoutError that names those that have not made
        it, and DeadRankError once one of these is gone, as far as this worker knows.
        """
        needs = f"{of_step} needs {must} steps of every rank"

        def look() -> None:
            gone = dead_ranks(self.group)
            late = _late(kv, tables, must, self.workers) if gone else {}
            missing = {rank: made for rank, made in late.items() if rank in gone}
            if missing:
                raise DeadRankError(
                    f"{needs}; {_text(missing)}, and is gone: make it anew in a group of those "
                    "that are left",
                    missing,
                )

        try:
            finish(pulled, look)
        except TimeoutError:
            late = _late(kv, tables, must, self.workers)
            if not late:
                raise
            raise TimeoutError(f"{needs}; they have not come in time: {_text(late)}") from None


def join_steps(kv: KV, name: str, tables: Sequence[str], group: dist.ProcessGroup | None) -> Member:
    """The ranks of the group go in step in these tables, which all of them have made; all call it.

    Where the last ones were more or fewer, rank 0 begins another generation, and who is of an
    earlier one is refused. Raises ValueError, TimeoutError, and DeadRankError if rank 0 is gone.
    """
    board, deadline = kv._worker.board, time.monotonic() + kv._timeout
    rank, workers = dist.get_rank(group), dist.get_world_size(group)
    if not tables:
        return Member(name, group, rank, workers, 0)
    ours = Generation(0, workers, tuple(kv._table(table).number for table in tables))
    known = board.generation(name)
    while known is None or known != replace(ours, number=known.number):
        if rank == 0:
            known = _begin(kv, name, tables, known, ours)
            continue
        if 0 in dead_ranks(group):
            raise DeadRankError(
                f"rank 0 of the {workers} workers of {name!r} is gone, and has not begun to go in "
                "step: make it anew in a group of those that are left",
                dead_ranks(group),
            )
        if time.monotonic() >= deadline:
            raise TimeoutError(
                f"rank 0 of the {workers} workers of {name!r} has not begun to go in step in time; "
                f"{'nobody has' if known is None else f'the last ones were {known.workers}'}"
            )
        time.sleep(PAUSE_S)
        known = board.generation(name)
    return Member(name, group, rank, workers, known.number)


def _begin(
    kv: KV, name: str, tables: Sequence[str], known: Generation | None, ours: Generation
) -> Generation:
    """Should this worker end on the way, the next one begins another generation."""
    board = kv._worker.board
    begins = replace(ours, number=board.next_generation(name), has_begun=False)
    begun = replace(begins, has_begun=True)
    step = 0
    if board.change_generation(name, known, begins):
        if known is not None:
            most = max(known.workers, ours.workers)
            step = 1 + max(max(kv._steps_of(table, most)) for table in tables)
        finish([kv._begin_generation(table, begun, step) for table in tables])
        if board.change_generation(name, begins, begun):
            return begun
    raise ValueError(
        f"two workers of rank 0 begin to go in step in {name!r} at a time; give each group of "
        "workers another name, and end a group before the next one begins"
    )


class Clock:
    """It is a dense table of one element whose workers go in step. No snapshot has it."""

    def __init__(self, kv: KV, table: str, member: Member) -> None:
        """The table is made."""
        self._kv, self._table, self._member = kv, table, member
        self.reached = kv._steps_of(table, member.workers)  # of each worker, as it was made
        self._said = self.reached[member.rank]
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
            self._pushed = self._kv._push_step(self._table, torch.zeros(1), step, self._member)
            self._said = step
        if self._pushed is not None:
            self._pushed.wait()
            self._pushed = None

    def wait(self, step: int) -> None:
        """Until all workers have made it. Errors: as of Member.finish()."""
        if step <= self._seen:
            return
        pulled = [self._kv._pull_step(self._table, self._out, step)]
        of_step = f"step {self._said} of {self._member.name!r}"
        self._member.finish(self._kv, pulled, [self._table], step, of_step)
        self._seen = step


def clocks(kv: KV, name: str, which: Sequence[str], group: dist.ProcessGroup | None) -> list[Clock]:
    """Of the steps of the group's ranks in `name`. All of them make the same ones. Errors: as
    KV.init() and join_steps()."""
    tables = [f"{name}/{one}" for one in which]
    for table in tables:
        kv._init_clock(table)
    member = join_steps(kv, name, tables, group)
    return [Clock(kv, table, member) for table in tables]


def _late(kv: KV, tables: Sequence[str], must: int, workers: int) -> dict[int, int]:
    """The ranks that have not made this step in all of these tables, and what they have made.

    Empty: nobody is late, or the servers do not answer.
    """
    try:
        steps = [kv._steps_of(table, workers, LATE_S) for table in tables]
    except TimeoutError:
        return {}
    reached = [min(of_rank) for of_rank in zip(*steps, strict=True)]
    return {rank: step for rank, step in enumerate(reached) if step < must}


def _text(late: dict[int, int]) -> str:
    return ", ".join(f"rank {rank} has made {step}" for rank, step in late.items())
