"""InStep: the steps of a worker that waits for the others, as its mode says (modes.py).

Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

from .flat import Flat
from .kv import KV, Pending
from .modes import Stale, Sync

LOOK_S = 2.0  # for who is late, after a wait in vain


class InStep:
    def __init__(self, kv: KV, name: str, flats: list[Flat], mode: Sync | Stale, rank: int) -> None:
        """flats: whose tables have a pace. A worker that was started again goes on where it was."""
        self._kv = kv
        self._name = name
        self._flats = flats
        self._mode = mode
        self._rank = rank
        self._step = min((kv._steps_of(flat.table)[rank] for flat in flats), default=0)
        self._pushed: list[Pending] = []
        if self._step > 0:
            self._finish()

    def step(self) -> None:
        """Raises ValueError, before anything moves, for a parameter without a gradient; else as
        Optimizer.step(). After a TimeoutError it may be called again."""
        if self._pushed:  # the step before has not been seen to end; servers read its gradients
            self._finish()
        for flat in self._flats:
            flat.gather_all_gradients()
        self._step += 1
        for flat in self._flats:
            self._pushed.append(
                self._kv._push_step(flat.table, flat.trained_gradients, self._rank, self._step)
            )
        self._finish()

    def _finish(self) -> None:
        must = self._mode.must_have(self._step)
        pulled = [
            self._kv._pull_step(flat.table, flat.trained_values, must) for flat in self._flats
        ]
        try:
            self._kv.wait(*self._pushed, *pulled)
        except TimeoutError as error:
            raise TimeoutError(self._who_is_late(must) or str(error)) from None
        self._pushed = []
        for flat in self._flats:
            flat.scatter()

    def _who_is_late(self, must: int) -> str | None:
        """None: nobody is, or the servers do not answer."""
        try:
            steps = [self._kv._steps_of(flat.table, LOOK_S) for flat in self._flats]
        except TimeoutError:
            return None
        reached = [min(of_rank) for of_rank in zip(*steps, strict=True)]
        late = [f"rank {rank} has made {step}" for rank, step in enumerate(reached) if step < must]
        if not late:
            return None
        return (
            f"step {self._step} of the optimizer {self._name!r} needs {must} steps of every rank; "
            f"they have not come in time: {', '.join(late)}"
        )
