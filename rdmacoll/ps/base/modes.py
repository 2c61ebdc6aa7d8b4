"""How the workers of a ps.Optimizer, or of a module of rows, wait for each other.

Floor: rdmacoll/ps/base. Thread: values.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Async:
    """A step waits for no other worker. At the servers each push is a step of its own."""


@dataclasses.dataclass(frozen=True)
class Sync:
    """Bulk-synchronous: a step ends when all workers have made it.

    The servers step once, with the mean of all gradients. They are added in the order of ranks, so
    the bits are the same in each run.
    """

    def must_have(self, step: int) -> int:
        """The step of all others that a worker waits for after this one of its own."""
        return step


@dataclasses.dataclass(frozen=True)
class Stale:
    """A worker is at most so many steps ahead of the slowest one: stale synchronous parallel.

    At the servers each push is a step of its own, as in Async.
    """

    steps: int

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int):
            raise TypeError(f"steps is a {type(self.steps).__name__}; give an integer")
        if self.steps < 0:
            raise ValueError(f"steps={self.steps}; give 0 or more")

    def must_have(self, step: int) -> int:
        """The same as of Sync."""
        return max(step - self.steps, 0)


Mode = Async | Sync | Stale
