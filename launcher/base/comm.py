"""Comm: how the agents of a job talk to each other; and Alone, the Comm of an only agent.

It carries bytes, which their receiver parses: nothing that comes from another host is unpickled.
The agents of several hosts talk over launcher/star, and first of all over MPI (over_mpi.py).
Floor: launcher/base. Thread: the agent's.
"""

from collections import deque
from collections.abc import Sequence
from typing import Protocol


class Gathering(Protocol):
    """An allgather on its way."""

    def test(self) -> bytes | None:
        """What all agents gave, in their order, once it is complete; before, None."""

    def wait(self) -> bytes:
        """The same, when it is complete."""

    @property
    def must_be_tested(self) -> bool:
        """Whether nothing that a selector could watch tells when it goes on."""


class Gatherer(Protocol):
    """The agents of a job, in the order of its hosts. All of them make the same calls."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def begin_gathering(self, mine: bytes, lengths: Sequence[int]) -> Gathering:
        """An allgather to which each agent gives as many bytes as `lengths` says."""


class Comm(Gatherer, Protocol):
    """Agents that survive the loss of others, but not of agent 0."""

    def from_first(self, mine: bytes) -> bytes:
        """What agent 0 gave."""

    def from_all(self, mine: bytes) -> list[bytes]:
        """What each agent gave; nothing of those that are lost."""

    def put(self, record: bytes) -> None:
        """Shows all agents this one's record."""

    def next_table(self) -> list[bytes] | None:
        """The records of all agents; None if they have not changed.

        All agents get the same tables in the same order.
        """

    @property
    def others(self) -> list[int]:
        """The agents that are not lost, without this one. Agent 0 knows them all, the others it."""

    def send_mail(self, agent: int, text: bytes) -> None:
        """To one of these."""

    def take_mail(self) -> list[tuple[int, bytes]]:
        """What they have sent since the last call."""

    def fileno(self) -> int | None:
        """Readable when poll() has something to do."""

    @property
    def deadline(self) -> float | None:
        """When it has (time.monotonic)."""

    def poll(self) -> None:
        """Hears the others. ConnectionError if agent 0 is lost."""


class _Gathered:
    must_be_tested = False

    def __init__(self, all_bytes: bytes) -> None:
        self._all = all_bytes

    def test(self) -> bytes:
        return self._all

    def wait(self) -> bytes:
        return self._all


class Alone:
    """For the only agent of a job on one host, which talks to nobody."""

    rank = 0
    size = 1
    deadline = None

    def __init__(self) -> None:
        self._tables: deque[list[bytes]] = deque()
        self.others: list[int] = []

    def begin_gathering(self, mine: bytes, _: Sequence[int]) -> Gathering:
        return _Gathered(mine)

    def from_first(self, mine: bytes) -> bytes:
        return mine

    def from_all(self, mine: bytes) -> list[bytes]:
        return [mine]

    def put(self, record: bytes) -> None:
        self._tables.append([record])

    def next_table(self) -> list[bytes] | None:
        return self._tables.popleft() if self._tables else None

    def send_mail(self, agent: int, text: bytes) -> None:
        raise AssertionError(f"{text!r} for agent {agent} of a job of one")

    def take_mail(self) -> list[tuple[int, bytes]]:
        return []

    def fileno(self) -> None:
        return None

    def poll(self) -> None:
        pass
