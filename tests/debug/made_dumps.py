"""Dumps of ranks as the engine writes them, made by hand.

Floor: tests.
"""

import json
from typing import Any

from rdmacoll.debug.dumps import FORMAT, Dump, parse

SECOND_NS = 1_000_000_000
NOW_NS = 100 * SECOND_NS


def collective(sequence: int, state: str = "done", **changes: Any) -> dict[str, Any]:
    """An all_reduce of 1000 floats that took a second, or has been in flight for one."""
    begin_ns = NOW_NS - 20 * SECOND_NS + sequence * SECOND_NS
    ended = state in ("done", "failed")
    return {
        "group": 1,
        "sequence": sequence,
        "operation": "all_reduce",
        "state": state,
        "bytes": 4000,
        "root": 0,
        "algorithm": "one_shot",
        "dtype": "Float32",
        "op": "Sum",
        "queued_ns": begin_ns,
        "started_ns": 0 if state == "queued" else begin_ns,
        "ended_ns": begin_ns + SECOND_NS if ended else 0,
        **changes,
    }


def moved(sequence: int, name: str, state: str = "done", **changes: Any) -> dict[str, Any]:
    """A send or recv."""
    made = collective(sequence, state, operation=name, peer=0, tag=0, **changes)
    for key in ("root", "algorithm", "dtype", "op"):
        del made[key]
    return made


def remote(sequence: int, name: str, state: str = "done", **changes: Any) -> dict[str, Any]:
    """What a session does with the other process's memory; the session is WITH_RANK_1."""
    made = collective(sequence, state, operation=f"remote_{name}", **{"group": 2, **changes})
    for key in ("root", "algorithm", "dtype", "op"):
        del made[key]
    return made


def waits(name: str, who: str) -> dict[str, Any]:
    """A wait for a process with which there is no session."""
    return remote(0, name, "running", group=0) | {"with": who, "bytes": 0}


def dump_of(rank: int, world: int, *operations: dict[str, Any], **changes: Any) -> Dump:
    return parse(text_of(rank, world, *operations, **changes))


WITH_RANK_1 = {"id": 2, "with": "rank 1", "reach": "tcp", "failure": "", "ended": False}
WITH_ANY = {"id": 3, "with": "", "reach": "", "failure": "", "ended": False}


def with_sessions(text: str, *sessions: dict[str, Any]) -> Dump:
    """The dump, of a rank that has these; otherwise it is one of a rank that knows of none."""
    return parse(json.dumps({**json.loads(text), "sessions": list(sessions)}))


def text_of(rank: int, world: int, *operations: dict[str, Any], **changes: Any) -> str:
    group = {
        "id": 1,
        "name": "0",
        "rank": rank,
        "ranks": list(range(world)),
        "reach": "shm",
        "failure": "",
        "left": False,
        **changes,
    }
    data = {
        "format": FORMAT,
        "reason": "asked for",
        "pid": 1000 + rank,
        "rank": rank,
        "host": "h",
        "clock_ns": NOW_NS,
        "wall_ns": NOW_NS + 7 * SECOND_NS,
        "left_out": 0,
        "groups": [group],
        "in_flight": [one for one in operations if not one["ended_ns"]],
        "ended": [one for one in operations if one["ended_ns"]],
    }
    return json.dumps(data)
