"""InStep: the steps of a worker that waits for the others, as its mode says (base/modes.py).

Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

from .base.modes import Stale, Sync
from .base.pending import Pending
from .clock import Member
from .flat import Flat
from .kv import KV


class InStep:
    def __init__(
        self, kv: KV, name: str, flats: list[Flat], mode: Sync | Stale, member: Member
    ) -> None:
        """flats: whose tables have a pace. A worker that was started again goes on where it was; if
        there are more or fewer of them, all go on after the last step of those before."""
        self._kv = kv
        self._name = name
        self._flats = flats
        self._mode = mode
        self._member = member
        made = [kv._steps_of(flat.table, member.workers)[member.rank] for flat in flats]
        self._step = min(made, default=0)
        # Servers read gradients where they are; with Sync until all workers have made the step.
        self._pushed: list[Pending] = []
        self._pulled: list[Pending] = []  # which write to parameters
        if self._step > 0:
            self._finish()

    def is_over(self) -> bool:
        """Whether these workers were told to go in step no more: a step is refused."""
        now = self._kv._worker.board.generation(self._name)
        return now is not None and now.number != self._member.generation

    def step(self) -> None:
        """Raises ValueError, before anything moves, for a parameter without a gradient; else as
        Optimizer.step(). After a TimeoutError it may be called again; not after a DeadRankError."""
        if self._pushed or self._pulled:  # the step before has not been seen to end
            self._finish()
        for flat in self._flats:
            flat.gather_all_gradients()
        self._step += 1
        for flat in self._flats:
            self._pushed.append(
                self._kv._push_step(
                    flat.table, flat.trained_gradients, self._step, self._member, flat.rates
                )
            )
        self._finish()

    def _finish(self) -> None:
        must = self._mode.must_have(self._step)
        tables = [flat.table for flat in self._flats]
        of_step = f"step {self._step} of the optimizer {self._name!r}"
        self._member.finish(self._kv, self._pulled, tables, must, of_step)  # of a wait in vain
        for flat in self._flats:
            for first, out in flat.landings(flat.trained):
                self._pulled.append(self._kv._pull_step(flat.table, out, must, first))
        for pending in self._pushed, self._pulled:
            self._member.finish(self._kv, pending, tables, must, of_step)
        for flat in self._flats:
            flat.scatter()
