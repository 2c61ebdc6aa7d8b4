"""The table of the agents: one record of each, gathered round after round over MPI.

All agents see the same tables in the same order and act on nothing else, so all decide the same:
which failure was the first, when every rank has sent its card, when the job is over.
Floor: launcher. Thread: the agent's; nothing blocks.
"""

import struct
from dataclasses import dataclass

from mpi4py import MPI

from .cause import Cause, Why


@dataclass(frozen=True)
class Record:
    live: int  # ranks of this host that have not ended
    failures: int  # so often a rank of this host has ended, and not well
    missing: int  # ranks of this host that did, and are not members again
    exchange: int  # the exchange of cards that the next fields are about
    arrived: frozenset[int]  # ranks whose cards this agent holds
    cards_bytes: int  # length of their cards, final once all of the host's are there
    cause: Cause


_FIXED = struct.Struct("<9q")


def pack(record: Record, world: int) -> bytes:
    cause = record.cause
    fixed = _FIXED.pack(
        record.live,
        record.failures,
        record.missing,
        record.exchange,
        record.cards_bytes,
        cause.why,
        cause.rank,
        cause.status,
        cause.time_ns,
    )
    bits = sum(1 << rank for rank in record.arrived)
    return fixed + bits.to_bytes((world + 7) // 8, "little")


def unpack(data: bytes) -> Record:
    fields = _FIXED.unpack_from(data)
    live, failures, missing, exchange, cards_bytes, why, rank, status, time_ns = fields
    bits = int.from_bytes(data[_FIXED.size :], "little")
    arrived = frozenset(rank for rank in range(bits.bit_length()) if bits >> rank & 1)
    cause = Cause(Why(why), rank, status, time_ns)
    return Record(live, failures, missing, exchange, arrived, cards_bytes, cause)


class Table:
    """Gathers records; step() by step()."""

    def __init__(self, comm: MPI.Comm, world: int) -> None:
        self._comm = comm.Dup()
        self._world = world
        self._request: MPI.Request | None = None
        self._record = b""
        self._all = bytearray()

    @property
    def pending(self) -> bool:
        return self._request is not None

    def close(self) -> None:
        """When no round is on, on all agents."""
        self._comm.Free()

    def step(self, mine: Record) -> list[Record] | None:
        """The next table if it is complete, by agent. Begins a round with `mine` if none is on."""
        if self._request is None:
            self._record = pack(mine, self._world)
            self._all = bytearray(len(self._record) * self._comm.size)
            self._request = self._comm.Iallgather(
                [self._record, MPI.BYTE],
                [self._all, len(self._record), MPI.BYTE],
            )
        if not self._request.Test():
            return None
        self._request = None
        size = len(self._record)
        return [unpack(bytes(self._all[at : at + size])) for at in range(0, len(self._all), size)]


class CardGather:
    """One allgather of the hosts' cards, whose lengths a table has told."""

    def __init__(self, comm: MPI.Comm, mine: bytes, lengths: list[int]) -> None:
        self._mine = mine
        self._all = bytearray(sum(lengths))
        self._request = comm.Iallgatherv(
            [self._mine, MPI.BYTE],
            [self._all, lengths, MPI.BYTE],
        )

    def test(self) -> bytes | None:
        """Everybody's cards, in the order of the agents, once they are there."""
        return bytes(self._all) if self._request.Test() else None

    def wait(self) -> None:
        self._request.Wait()
