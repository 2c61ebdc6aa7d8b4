"""OverMpi: how agents of several hosts exchange their keys and the cards of the first group, over
MPI. Only this file imports mpi4py.

Each agent is a job of its own to MPI, started by an mpiexec of its own: one mpiexec for all of them
would end them all with the first host that is lost. So each connects to agent 0. MPICH 5.0 crashes
when two connect at a time, and does so no more when agent 0 gives them turns. MPI waits for ever
for an agent that is lost meanwhile; the star notices that, so it is listened to all the time.
Floor: launcher/meet. Thread: the agent's.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import mpi4py
from rdmacoll.launcher.base.comm import Gathering
from rdmacoll.launcher.star.hub import Hub
from rdmacoll.launcher.star.spoke import Spoke

from .patience import TICK_S, while_all_live

mpi4py.rc.finalize = False  # it could wait for a host that is lost; no process of MPI waits for us
from mpi4py import MPI  # noqa: E402

Requests = list[MPI.Request]


def meet(star: Hub | Spoke) -> "OverMpi":
    """All agents call it, when all are in the star. AgentLost, HubLost."""
    links = []
    if isinstance(star, Hub):
        port = MPI.Open_port()
        for agent in range(1, star.size):
            star.give_turn(agent, port)
            links.append(while_all_live(star, lambda: MPI.COMM_SELF.Accept(port)))
        MPI.Close_port(port)
    else:
        port = star.wait_for_turn()
        links.append(while_all_live(star, lambda: MPI.COMM_SELF.Connect(port)))
    _unlink_segments()
    return OverMpi(star, links)


class _Gathered:
    """Agent 0 receives a part from each agent, sends all parts to each, and hears that they came:
    MPI may keep what it has accepted until it is called again, and this may be the last time."""

    must_be_tested = True

    def __init__(
        self, star: Hub | Spoke, links: list[MPI.Intercomm], mine: bytes, lengths: Sequence[int]
    ) -> None:
        self._star = star
        rank = star.rank
        # Kept: MPI reads and writes them until a request has ended.
        self._mine = mine
        self._all = memoryview(bytearray(sum(lengths)))
        ends = [sum(lengths[: agent + 1]) for agent in range(len(lengths))]
        parts = [self._all[end - n : end] for end, n in zip(ends, lengths, strict=True)]
        parts[rank][:] = mine
        self._rounds = self._as_first(links, parts) if rank == 0 else self._as_other(links[0])
        self._requests = next(self._rounds)

    def test(self) -> bytes | None:
        while MPI.Request.Testall(self._requests):
            if (requests := next(self._rounds, None)) is None:
                return bytes(self._all)
            self._requests = requests
        return None

    def wait(self) -> bytes:
        while (everything := self.test()) is None:
            self._star.expect_all()
            time.sleep(TICK_S)
        return everything

    def _as_first(self, links: list[MPI.Intercomm], parts: list[memoryview]) -> Iterator[Requests]:
        each = list(zip(links, parts[1:], strict=True))
        yield [link.Irecv([part, MPI.BYTE], source=0) for link, part in each]
        yield [link.Isend([self._all, MPI.BYTE], dest=0) for link in links]
        yield [link.Irecv([bytearray(), MPI.BYTE], source=0) for link in links]

    def _as_other(self, link: MPI.Intercomm) -> Iterator[Requests]:
        yield [
            link.Isend([self._mine, MPI.BYTE], dest=0),
            link.Irecv([self._all, MPI.BYTE], source=0),
        ]
        yield [link.Isend([self._mine[:0], MPI.BYTE], dest=0)]


class OverMpi:
    def __init__(self, star: Hub | Spoke, links: list[MPI.Intercomm]) -> None:
        self.rank = star.rank
        self.size = star.size
        self._star = star
        self._links = links

    def begin_gathering(self, mine: bytes, lengths: Sequence[int]) -> Gathering:
        return _Gathered(self._star, self._links, mine, lengths)


def _unlink_segments() -> None:
    """Unlinks MPICH's files in /dev/shm, which it keeps to the end: kill -9 would leave them."""
    with open("/proc/self/maps") as maps:
        names = {line.split()[-1] for line in maps if "/dev/shm/mpich_" in line}
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(name)


def library() -> str:
    """Name and version of the MPI library that mpi4py has loaded."""
    return MPI.Get_library_version().splitlines()[0]


def is_of_another_mpi() -> bool:
    return "MPICH" not in library()
