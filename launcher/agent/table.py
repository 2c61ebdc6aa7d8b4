"""The table of the agents: one record of each, gathered round after round.

All agents see the same tables in the same order and act on nothing else, so all decide the same:
which failure was the first, when every rank has sent its payload, when the job is over.
Floor: launcher/agent. Thread: the agent's; nothing blocks.
"""

import struct
import time
from dataclasses import dataclass

from rdmacoll.launcher.base.cause import Cause, Why
from rdmacoll.launcher.base.comm import Comm, Gathering

# An agent takes part in a round every few milliseconds. mpiexec ends the job when one has died, but
# was seen not to, so the others do not wait for ever.
SILENCE_S = 60.0


class AgentsSilent(RuntimeError):
    """A round of the table does not end: an agent hangs, or has ended unnoticed."""


@dataclass(frozen=True)
class Record:
    live: int  # ranks of this host that have not ended
    failures: int  # so often a rank of this host has ended, and not well
    missing: int  # ranks of this host that did, and are not members again
    exchange: int  # the exchange that the next fields are about
    arrived: frozenset[int]  # ranks whose payloads this agent holds
    payload_bytes: int  # length of their payloads, final once all of the host's are there
    cause: Cause


_FIXED = struct.Struct("<9q")


def pack(record: Record, world: int) -> bytes:
    cause = record.cause
    fixed = _FIXED.pack(
        record.live,
        record.failures,
        record.missing,
        record.exchange,
        record.payload_bytes,
        cause.why,
        cause.rank,
        cause.status,
        cause.time_ns,
    )
    bits = sum(1 << rank for rank in record.arrived)
    return fixed + bits.to_bytes((world + 7) // 8, "little")


def unpack(data: bytes) -> Record:
    fields = _FIXED.unpack_from(data)
    live, failures, missing, exchange, payload_bytes, why, rank, status, time_ns = fields
    bits = int.from_bytes(data[_FIXED.size :], "little")
    arrived = frozenset(rank for rank in range(bits.bit_length()) if bits >> rank & 1)
    cause = Cause(Why(why), rank, status, time_ns)
    return Record(live, failures, missing, exchange, arrived, payload_bytes, cause)


class Table:
    """Gathers records; step() by step()."""

    def __init__(self, comm: Comm, world: int) -> None:
        self._comm = comm.duplicate()
        self._world = world
        self._gathering: Gathering | None = None
        self._begun_s = 0.0

    def close(self) -> None:
        """When no round is on, on all agents."""
        self._comm.close()

    def step(self, mine: Record) -> list[Record] | None:
        """The next table if it is complete, by agent. Begins a round with `mine` if none is on.

        AgentsSilent if the round takes too long.
        """
        if self._gathering is None:
            record = pack(mine, self._world)
            lengths = [len(record)] * self._comm.size
            self._gathering = self._comm.begin_gathering(record, lengths)
            self._begun_s = time.monotonic()
        everyones = self._gathering.test()
        if everyones is None:
            if time.monotonic() - self._begun_s > SILENCE_S:
                raise AgentsSilent(
                    f"not all agents of the job have answered for {SILENCE_S:g} s: one of them "
                    "hangs or has ended, or the network between the hosts is down"
                )
            return None
        self._gathering = None
        size = len(everyones) // self._comm.size
        return [unpack(everyones[at : at + size]) for at in range(0, len(everyones), size)]
