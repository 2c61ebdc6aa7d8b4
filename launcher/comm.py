"""Comm: what agents say to each other by, and the one of an agent that has no others.

Bytes only: what comes from another host is parsed by whoever asked for it, and never unpickled.
The one that goes over MPI is in over_mpi.py, which alone loads MPI.
Floor: launcher. Thread: the agent's.
"""

from collections.abc import Sequence
from typing import Protocol


class Gathering(Protocol):
    """An allgather on its way."""

    def test(self) -> bytes | None:
        """What everybody gave, in the order of the agents, once it is there."""

    def wait(self) -> None: ...


class Comm(Protocol):
    """The agents of a job, in the order of its hosts. All of them make the same calls."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def from_first(self, mine: bytes) -> bytes:
        """What agent 0 gave."""

    def from_all(self, mine: bytes) -> list[bytes]: ...
    def begin_gathering(self, mine: bytes, lengths: Sequence[int]) -> Gathering:
        """Of so many bytes from each agent."""

    def duplicate(self) -> "Comm":
        """Its messages do not mix with those of this one."""

    def close(self) -> None: ...


class _Gathered:
    def __init__(self, all_bytes: bytes) -> None:
        self._all = all_bytes

    def test(self) -> bytes | None:
        return self._all

    def wait(self) -> None:
        pass


class Alone:
    """The only agent of a job on one host: it needs no MPI."""

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
