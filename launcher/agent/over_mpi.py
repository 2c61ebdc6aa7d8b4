"""OverMpi: how the agents of several hosts talk, over MPI. Only this file imports mpi4py.

Floor: launcher/agent. Thread: the agent's.
"""

import fcntl
import os
import termios
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from mpi4py import MPI
from rdmacoll.launcher.base.comm import Comm, Gathering

READ_TIMEOUT_S = 5.0  # for mpiexec's process on this host, which has nothing else to do


class _Request:
    def __init__(self, comm: MPI.Comm, mine: bytes, lengths: Sequence[int]) -> None:
        self._mine = mine  # kept: MPI reads it until the request has ended
        self._all = bytearray(sum(lengths))
        self._request = comm.Iallgatherv(
            [self._mine, MPI.BYTE], [self._all, list(lengths), MPI.BYTE]
        )

    def test(self) -> bytes | None:
        return bytes(self._all) if self._request.Test() else None

    def wait(self) -> None:
        self._request.Wait()


class OverMpi:
    def __init__(self, comm: MPI.Intracomm = MPI.COMM_WORLD) -> None:
        self._comm = comm

    @property
    def rank(self) -> int:
        return self._comm.rank

    @property
    def size(self) -> int:
        return self._comm.size

    def from_first(self, mine: bytes) -> bytes:
        length = bytearray(len(mine).to_bytes(8, "little"))
        self._comm.Bcast([length, MPI.BYTE])
        text = bytearray(mine if self.rank == 0 else int.from_bytes(length, "little"))
        self._comm.Bcast([text, MPI.BYTE])
        return bytes(text)

    def from_all(self, mine: bytes) -> list[bytes]:
        lengths = bytearray(8 * self.size)
        self._comm.Allgather([len(mine).to_bytes(8, "little"), MPI.BYTE], [lengths, 8, MPI.BYTE])
        each = [int.from_bytes(lengths[at : at + 8], "little") for at in range(0, len(lengths), 8)]
        everything = bytearray(sum(each))
        self._comm.Allgatherv([mine, MPI.BYTE], [everything, each, MPI.BYTE])
        ends = [sum(each[: agent + 1]) for agent in range(self.size)]
        return [bytes(everything[end - n : end]) for end, n in zip(ends, each, strict=True)]

    def begin_gathering(self, mine: bytes, lengths: Sequence[int]) -> Gathering:
        return _Request(self._comm, mine, lengths)

    def duplicate(self) -> Comm:
        return OverMpi(self._comm.Dup())

    def close(self) -> None:
        """All agents call it, when no message is on its way."""
        self._comm.Free()


def library() -> str:
    """Name and version of the MPI library that mpi4py has loaded."""
    return MPI.Get_library_version().splitlines()[0]


def unlink_segments() -> None:
    """Unlinks MPICH's files in /dev/shm, which it keeps to the end: kill -9 would leave them."""
    MPI.COMM_WORLD.Barrier()  # the other agents of a machine have mapped them too
    with open("/proc/self/maps") as maps:
        names = {line.split()[-1] for line in maps if "/dev/shm/mpich_" in line}
    for name in names:
        with suppress(FileNotFoundError):  # another agent was quicker
            os.unlink(name)


def abort() -> NoReturn:
    """Ends all agents without waiting for them.

    mpiexec kills this agent at once. So it first gets time to read what the agent has just said.
    """
    deadline = time.monotonic() + READ_TIMEOUT_S
    while _has_unread(2) and time.monotonic() < deadline:
        time.sleep(0.01)
    MPI.COMM_WORLD.Abort(1)
    os._exit(1)  # mpiexec may take a moment


def _has_unread(fd: int) -> bool:
    """Whether a pipe still holds what was written to it."""
    count = array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, count)
    except OSError:  # no pipe
        return False
    return count[0] > 0


def leave() -> None:
    MPI.Finalize()
