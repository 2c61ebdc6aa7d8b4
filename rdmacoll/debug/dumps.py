"""A rank's flight recorder as values. Pure but for files.

csrc/engine/recorder/flight_dump.cc writes what is read here.
"""

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from rdmacoll.base import files
from rdmacoll.base.printable import MOST, printable

FORMAT = "rdmacoll flight recorder 1"
# More than the largest recorder's: 2**20 operations of some 300 bytes.
MOST_BYTES = 1 << 29
# Texts that may have several lines, as the report of a failed group has; and how many are kept.
OF_LINES, MOST_LINES = ("failure", "reason"), 32
REMOTE = "remote_"  # begins the names of operations on other processes' memory
STATES = ("queued", "running", "done", "failed")


class BadDump(ValueError):
    """Not a flight recorder's dump, or not a whole one."""


@dataclass(frozen=True)
class Operation:
    """A collective, a send or recv, or what is done with another process's memory.

    Times are the rank's own clock, 0 where it did not come.
    """

    group: int  # or a session; 0: neither
    sequence: int
    name: str
    state: str  # of STATES
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
    other: str = ""  # whom it is with, if that is of no session

    @property
    def is_message(self) -> bool:
        return self.name in ("send", "recv")

    @property
    def is_remote(self) -> bool:
        return self.name.startswith(REMOTE)

    @property
    def is_collective(self) -> bool:
        return not self.is_message and not self.is_remote

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
class Session:
    """A process and another one, whose memory it reads and writes."""

    id: int  # no group has it
    other: str  # as people know it; "": any process
    reach: str
    failure: str  # why it has ended
    ended: bool


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
    sessions: dict[int, Session]
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
    """Checks every field, as the writer may be of another version, or hostile.

    The texts in the result are safe to print.
    """
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise BadDump(f"its format is {data['format']!r}, not {FORMAT!r}")
        return _dump(data)
    except BadDump:
        raise
    # Among them what Python raises for endless numbers and for very deep nesting.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadDump(f"not a whole dump: {printable(repr(error), 200)}") from error


def _dump(data: dict[str, Any]) -> Dump:
    listed = [_group(entry) for entry in data["groups"]]
    groups = {group.id: group for group in listed}
    # Older ranks know of none.
    sessions = {one.id: one for one in map(_session, data.get("sessions", []))}
    operations = [_operation(entry, groups) for entry in data["in_flight"] + data["ended"]]
    rank = _checked("rank", data["rank"], int)
    if rank < 0:  # no launcher has said: as a group does
        rank = min((group.ranks[group.rank] for group in groups.values()), default=-1)
    texts = {name: _checked(name, data[name], str) for name in ("host", "reason")}
    names = ("pid", "clock_ns", "wall_ns", "left_out")
    numbers = {name: _checked(name, data[name], int) for name in names}
    return Dump(
        rank=rank,
        groups=groups,
        sessions=sessions,
        operations=tuple(sorted(operations, key=lambda one: (one.queued_ns, one.sequence))),
        **texts,
        **numbers,
    )


def _group(entry: dict[str, Any]) -> Group:
    ranks = tuple(_checked("ranks", rank, int) for rank in entry["ranks"])
    group = Group(**{**_fields(Group, {**entry, "ranks": None}), "ranks": ranks})
    if not 0 <= group.rank < len(ranks):
        raise BadDump(f"rank {group.rank} of a group of {len(ranks)}")
    return group


def _session(entry: dict[str, Any]) -> Session:
    return Session(**_fields(Session, {**entry, "other": entry["with"]}))


def _operation(entry: dict[str, Any], groups: dict[int, Group]) -> Operation:
    renamed = {**entry, "name": entry["operation"], "other": entry.get("with")}
    operation = Operation(**_fields(Operation, renamed))
    group = groups.get(operation.group)
    if operation.state not in STATES:
        raise BadDump(f"an operation is {operation.state!r}")
    if group is not None and operation.peer >= len(group.ranks):
        raise BadDump(f"a message with rank {operation.peer} of a group of {len(group.ranks)}")
    return operation


def _fields(kind: type, entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, each of its type. Other entries are of a newer version."""
    types = _types(kind)
    found = {name: entry[name] for name in types if entry.get(name) is not None}
    # Nearly always all values are right. To check them together takes a third of the time, which a
    # rank that writes its timeline spends; only if that finds something is each one checked.
    whole = {name: value for name, value in found.items() if type(value) is types[name]}
    texts = "".join([value for value in whole.values() if type(value) is str])
    numbers = [value for value in whole.values() if type(value) is int]
    if len(whole) < len(found) or not texts.isprintable() or len(texts) > MOST:
        return {name: _checked(name, value, types[name]) for name, value in found.items()}
    for outermost in (min(numbers), max(numbers)):
        _checked("a number", outermost, int)
    return found


@cache
def _types(kind: type) -> dict[str, Any]:
    return {field.name: field.type for field in fields(kind)}


def _checked(name: str, value: Any, kind: Any) -> Any:
    if type(value) is not kind:
        raise BadDump(f"{name} is no {kind.__name__}")
    if kind is int and not -(1 << 63) <= value < 1 << 63:
        raise BadDump(f"{name} is too large")
    if kind is not str:
        return value
    lines = value.split("\n")[:MOST_LINES] if name in OF_LINES else [value]
    return "\n".join(map(printable, lines))


def read_folder(folder: Path) -> tuple[list[Dump], list[str]]:
    """The newest dump of each process that wrote into the folder, and what could not be read."""
    newest: dict[tuple[str, int], Dump] = {}
    problems = []
    for path in sorted(folder.glob("rdmacoll-*.json")):
        try:
            dump = parse(files.read(path, MOST_BYTES).decode())
        except (OSError, UnicodeDecodeError, BadDump) as error:
            problems.append(printable(f"{path}: {error}"))
            continue
        key = (dump.host, dump.pid)
        if key not in newest or newest[key].wall_ns < dump.wall_ns:
            newest[key] = dump
    return sorted(newest.values(), key=lambda dump: dump.rank), problems
