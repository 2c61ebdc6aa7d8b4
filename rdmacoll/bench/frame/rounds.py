"""Who has a turn. In a round every way has one while the processes of all others sleep, so that
what the machine does meanwhile meets all alike; who begins changes from round to round.
"""

import time
from collections.abc import Callable

import torch.distributed as dist

from .job import watch

SETTLE_S = 0.02  # the system moved ranks apart within 12 ms


class Rounds:
    """`number` is that of this process's way, of so many; `control` is a group of all processes."""

    def __init__(self, number: int, ways: int, control: dist.ProcessGroup) -> None:
        self._number, self._ways, self._control = number, ways, control

    def in_turns(self, first: int, own: Callable[[], None]) -> None:
        """Every way does its own, one after the other."""
        for place in range(self._ways):
            watch()
            dist.barrier(group=self._control)
            if (first + place) % self._ways == self._number:
                own()


def settle() -> None:
    """What wakes a rank from the control group's sockets may put it on the core of the one that
    sent; while both compute the system moves them apart."""
    until = time.perf_counter() + SETTLE_S
    while time.perf_counter() < until:
        pass
