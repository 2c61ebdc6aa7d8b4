"""Dumps as one trace for Perfetto (ui.perfetto.dev) or chrome://tracing. Pure but for the file.

A rank is a process. A group has a track for its collectives, which run one after another, and a
session has one; what overlaps (waiting in the queue, point-to-point, remote memory) is drawn as
asynchronous slices.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rdmacoll.base import files

from .dumps import Dump, Operation
from .trace_file import Event


def write_timeline(dumps: Sequence[Dump], path: Path) -> None:
    events: list[Event] = []
    for dump in dumps:
        events += process_events(dump)
        tracks = track_events(dump)
        events += tracks.values()
        for number, operation in enumerate(dump.operations):
            if operation.group in tracks:
                events += slices(dump, operation, f"{dump.rank}.{number}")
    files.write(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}) + "\n")


def process_events(dump: Dump) -> Iterator[Event]:
    """What the process is called, and where it is among others."""
    process = {"pid": dump.rank, "ph": "M"}
    yield {**process, "name": "process_name", "args": {"name": f"rank {dump.rank}"}}
    yield {**process, "name": "process_sort_index", "args": {"sort_index": dump.rank}}


def track_events(dump: Dump) -> dict[int, Event]:
    """What the tracks of groups and sessions are called, by their ids."""
    names = {
        group.id: f"group {group.name} (ranks {', '.join(map(str, group.ranks))})"
        for group in dump.groups.values()
    }
    for session in dump.sessions.values():
        names[session.id] = f"session with {session.other or 'any process'}"
    return {
        track: {"pid": dump.rank, "tid": track, "ph": "M", "name": "thread_name",
                "args": {"name": name}}
        for track, name in names.items()
    }  # fmt: skip


def slices(dump: Dump, operation: Operation, number: str) -> Iterator[Event]:
    """Of one operation; `number` names it in the whole trace."""
    end_ns = operation.ended_ns or dump.clock_ns  # what is in flight goes on until the dump
    run_ns = operation.started_ns or end_ns
    common = {
        "pid": dump.rank,
        "tid": operation.group,
        "name": f"{operation.name} #{operation.sequence}",
        "args": {
            "bytes": operation.bytes,
            "state": operation.state,
            "algorithm": operation.algorithm,
            "dtype": operation.dtype,
            "op": operation.op,
            **({"peer": operation.peer, "tag": operation.tag} if operation.is_message else {}),
        },
    }
    if run_ns > operation.queued_ns:
        yield from _overlapping(dump, {**common, "cat": "queued"}, number, operation.queued_ns,
                                run_ns)  # fmt: skip
    if not operation.is_collective:
        if end_ns > run_ns:
            yield from _overlapping(dump, {**common, "cat": "moving"}, number, run_ns, end_ns)
    elif operation.started_ns:
        begin_us = _us(dump, run_ns)
        yield {**common, "cat": "running", "ph": "X", "ts": begin_us,
               "dur": (end_ns - run_ns) / 1e3}  # fmt: skip


def _overlapping(
    dump: Dump, common: Event, number: str, begin_ns: int, end_ns: int
) -> Iterator[Event]:
    yield {**common, "ph": "b", "id": number, "ts": _us(dump, begin_ns)}
    yield {**common, "ph": "e", "id": number, "ts": _us(dump, end_ns)}


def _us(dump: Dump, clock_ns: int) -> float:
    """All ranks' times on the walls' clock, so that one trace holds them."""
    return dump.wall(clock_ns) / 1e3
