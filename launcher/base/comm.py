"""Comm: how the agents of a job talk to each other; and Alone, the Comm of an only agent.

It carries bytes, which their receiver parses: nothing that comes from another host is unpickled.
OverMpi is in a file of its own, over_mpi.py, which alone loads MPI.
Floor: launcher/base. Thread: the agent's.
"""

from collections.abc import Sequence
from typing import Protocol


class Gathering(Protocol):
    """An allgather on its way."""

    def test(self) -> bytes | None:
        """What all agents gave, in their order, once it is complete; before, None."""

    def wait(self) -> None: ...


class Comm(Protocol):
    """The agents of a job, in the order of its hosts. All of them make the same calls."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def from_first(self, mine: bytes) -> bytes:
        """What agent 0 gave."""

    def from_all(self, mine: bytes) -> list[bytes]:
        """What each agent gave."""

    def begin_gathering(self, mine: bytes, lengths: Sequence[int]) -> Gathering:
        """An allgather to which each agent gives as many bytes as `lengths` says."""

    def duplicate(self) -> "Comm":
        """Another for the same agents; its messages do not mix with those of this one."""

    def close(self) -> None: ...


class _Gathered:
    def __init__(self, all_bytes: bytes) -> None:
        self._all = all_bytes

    def test(self) -> bytes | None:
        return self._all

    def wait(self) -> None:
        pass


class Alone:
    """For the only agent of a job on one host, which needs no MPI."""

    rank = 0
    size = 1

    def from_first(self, mine: bytes) -> bytes:
        return mine

    def from_all(self, mine: bytes) -> list[bytes]:
        return [mine]

    def begin_gathering(self, mine: bytes, _: Sequence[int]) -> Gathering:
        return _Gathered(mine)

    def duplicate(self) -> Comm:
        return self

    def close(self) -> None:
        pass
