"""A process of a team at a model: a worker that makes steps, or the holder that serves them."""

import math
import time
from dataclasses import dataclass, field

from .flat import layout_of
from .team import Way
from .training import Computation, Holder, module_of


@dataclass
class Steps:
    """Seconds of each step in a row."""

    whole: list[float] = field(default_factory=list)  # at a worker
    part: list[float] = field(default_factory=list)  # what it computed; the update, at the holder

    @property
    def quickest(self) -> float:
        return min(self.whole, default=math.inf)


class Member:
    holder: Holder | None = None

    def __init__(self, way: Way, model: str) -> None:
        self.model = model
        self._way, self._team = way, way.team
        way.prepare(layout_of(module_of(model)).elements, self._update)
        if self._team.holds:
            self.holder = Holder(model, way.parameters, way.gradients)
        else:
            worker = self._team.worker
            self._compute = Computation(model, worker, way.parameters, way.gradients[0])

    def _update(self) -> None:
        assert self.holder
        self.holder.update()

    def reset(self) -> None:
        """All of the team call it; the parameters are as in the beginning."""
        if self.holder:
            self.holder.reset()
        self._team.meet()

    def run(self, count: int) -> Steps:
        """All of the team call it for as many steps."""
        steps = Steps()
        if self.holder:
            self.holder.updates_s.clear()
            self._way.serve(count)
        else:
            for _ in range(count):
                self._step(steps)
        self._team.meet()
        if self.holder:
            steps.part = list(self.holder.updates_s)
        return steps

    def _step(self, steps: Steps) -> None:
        began = time.perf_counter()
        self._way.pull()
        got = time.perf_counter()
        self._compute()
        computed = time.perf_counter()
        self._way.push()
        steps.part.append(computed - got)
        steps.whole.append(time.perf_counter() - began)
