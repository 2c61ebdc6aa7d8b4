"""A rank's flight recorder as values; csrc/engine/flight_dump.cc writes it. Pure but for files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = "rdmacoll flight recorder 1"


class BadDump(ValueError):
    """Not a flight recorder's dump, or not a whole one."""


@dataclass(frozen=True)
class Operation:
    """A collective, or a send or recv; times are the rank's own clock, 0 where it did not come."""

    group: int
    sequence: int
    name: str
    state: str  # queued, running, done, failed
    bytes: int
    queued_ns: int
    started_ns: int
    ended_ns: int
    algorithm: str = ""
    dtype: str = ""
    op: str = ""
    root: int = -1
    peer: int = -1  # of send and recv: a rank of the group, -1 for any
    tag: int = 0

    @property
    def is_collective(self) -> bool:
        return self.name not in ("send", "recv")

    @property
    def is_done(self) -> bool:
        return self.state == "done"


@dataclass(frozen=True)
class Group:
    """A group as one of its ranks sees it."""

    id: int
    name: str
    rank: int  # of this process in the group
    ranks: tuple[int, ...]  # the job's ranks, by those of the group
    reach: str
    failure: str
    left: bool

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """The same on all its ranks."""
        return self.name, self.ranks


@dataclass(frozen=True)
class Dump:
    """What one process had done and was doing when it was asked."""

    pid: int
    rank: int
    host: str
    reason: str
    clock_ns: int
    wall_ns: int
    left_out: int
    groups: dict[int, Group]
    operations: tuple[Operation, ...]  # in the order in which they were queued

    @property
    def in_flight(self) -> list[Operation]:
        return [operation for operation in self.operations if operation.ended_ns == 0]

    def wall(self, clock_ns: int) -> int:
        """A time of this rank as nanoseconds since 1970."""
        return clock_ns - self.clock_ns + self.wall_ns

    def seconds_since(self, clock_ns: int) -> float:
        return (self.clock_ns - clock_ns) / 1e9


def parse(text: str) -> Dump:
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise BadDump(f"its format is {data['format']!r}, not {FORMAT!r}")
        return _dump(data)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise BadDump(f"not a whole dump: {error!r}") from error


def _dump(data: dict[str, Any]) -> Dump:
    groups = {entry["id"]: _group(entry) for entry in data["groups"]}
    operations = [_operation(entry) for entry in data["in_flight"] + data["ended"]]
    rank = data["rank"]
    if rank < 0:  # no launcher has said: as a group does
        rank = min((group.ranks[group.rank] for group in groups.values()), default=-1)
    return Dump(
        pid=data["pid"],
        rank=rank,
        host=data["host"],
        reason=data["reason"],
        clock_ns=data["clock_ns"],
        wall_ns=data["wall_ns"],
        left_out=data["left_out"],
        groups=groups,
        operations=tuple(sorted(operations, key=lambda one: (one.queued_ns, one.sequence))),
    )


def _group(entry: dict[str, Any]) -> Group:
    return Group(**{**entry, "ranks": tuple(entry["ranks"])})


def _operation(entry: dict[str, Any]) -> Operation:
    fields = dict(entry)
    return Operation(name=fields.pop("operation"), **fields)


def read_folder(folder: Path) -> tuple[list[Dump], list[str]]:
    """The newest dump of each process that wrote into the folder, and what could not be read."""
    newest: dict[tuple[str, int], Dump] = {}
    problems = []
    for path in sorted(folder.glob("rdmacoll-*.json")):
        try:
            dump = parse(path.read_text())
        except (OSError, BadDump) as error:
            problems.append(f"{path}: {error}")
            continue
        key = (dump.host, dump.pid)
        if key not in newest or newest[key].wall_ns < dump.wall_ns:
            newest[key] = dump
    return sorted(newest.values(), key=lambda dump: dump.rank), problems
