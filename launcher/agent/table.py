"""The table of the agents: one record of each, shown to all again whenever one changes.

All agents see the same tables in the same order and act on nothing else, so all decide the same:
which failure was the first, when every rank has sent its payload, when the job is over.
Floor: launcher/agent. Thread: the agent's; nothing blocks.
"""

import struct
from dataclasses import dataclass, replace

from rdmacoll.launcher.base.cause import Cause, Why
from rdmacoll.launcher.base.comm import Comm


@dataclass(frozen=True)
class Record:
    start: int  # the start of all ranks that it is of
    live: int  # ranks of this host that have not ended
    failures: int  # so often a rank of this host has ended, and not well
    missing: int  # ranks of this host that did, and are not members again
    exchange: int  # the exchange that the next fields are about; -1: the host is lost
    arrived: frozenset[int]  # ranks whose payloads this agent holds
    payload_bytes: int  # length of their payloads, final once all of the host's are there
    cause: Cause

    @property
    def is_lost(self) -> bool:
        return self.exchange < 0

    def lost(self) -> "Record":
        """Of the same host, now lost, whose ranks had ended before."""
        return replace(self, exchange=-1, arrived=frozenset(), payload_bytes=0)


_FIXED = struct.Struct("<10q")
_RANK = struct.Struct("<I")  # of those that have arrived; few, as they are of one host


def pack(record: Record) -> bytes:
    cause = record.cause
    fixed = _FIXED.pack(
        record.start,
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
    return fixed + struct.pack(f"<{len(record.arrived)}I", *sorted(record.arrived))


def unpack(data: bytes) -> Record:
    fields = _FIXED.unpack_from(data)
    start, live, failures, missing, exchange, payload_bytes, why, rank, status, time_ns = fields
    arrived = frozenset(rank for (rank,) in _RANK.iter_unpack(data[_FIXED.size :]))
    cause = Cause(Why(why), rank, status, time_ns)
    return Record(start, live, failures, missing, exchange, arrived, payload_bytes, cause)


class Table:
    """Of one start of all ranks."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._shown: Record | None = None

    def step(self, mine: Record) -> list[Record] | None:
        """Shows the others what has changed here. The next table, by agent, if there is one."""
        if mine != self._shown:
            self._shown = mine
            self._comm.put(pack(mine))
        while (table := self._comm.next_table()) is not None:
            records = [unpack(record) for record in table]
            if all(record.start == mine.start for record in records):  # not of an earlier start
                return records
        return None
