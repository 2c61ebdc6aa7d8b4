"""The timeline of a running rank, written while it runs: RDMACOLL_TIMELINE.

A thread looks at the flight recorder now and then, and appends what has ended since to the file.
"""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from .dumps import BadDump, Dump, Operation, parse
from .timeline import process_events, slices, track_events
from .trace_file import Event, TraceFile

# Between two looks: the less, the more of the recorder is new.
LONGEST_S, SHORTEST_S = 0.5, 0.01
TOO_MUCH = 4  # more than one in so many records: look sooner


class TimelineWriter:
    """`take_dump` gives the dump of this process as text, empty while it is in no group. What
    `name` names gets the rank: before the suffix, or where it says {rank}."""

    def __init__(self, take_dump: Callable[[], str], name: str) -> None:
        self._take_dump = take_dump
        self._name = name
        self._pid = os.getpid()
        self._file: TraceFile | None = None
        self._tracks: set[int] = set()  # of groups and sessions; that have a name
        self._written: set[tuple[int, str, int, int]] = set()  # of what the recorder holds
        self._newest: dict[int, int] = {}  # by group: the sequence of its last collective
        self._count = 0
        self._missing = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rdmacoll-timeline", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Writes what is left, and what is in flight as if it ended now. Nothing in a forked child,
        where the thread is not."""
        if os.getpid() != self._pid:
            return
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._watch()
        except (OSError, BadDump) as error:
            print(f"rdmacoll: RDMACOLL_TIMELINE: {error}", file=sys.stderr)
        if self._missing:
            print(
                f"rdmacoll: RDMACOLL_TIMELINE={self._name} lacks {self._missing} collectives, "
                "which the flight recorder forgot before they were written; raise "
                "RDMACOLL_FLIGHT_RECORDS",
                file=sys.stderr,
            )

    def _watch(self) -> None:
        wait_s = LONGEST_S
        try:
            while not self._stop.wait(wait_s):
                share = self._look(at_end=False)
                wait_s = wait_s / 2 if share > 1 / TOO_MUCH else wait_s * 2
                wait_s = min(max(wait_s, SHORTEST_S), LONGEST_S)
            self._look(at_end=True)
        finally:
            if self._file is not None:
                self._file.close()

    def _look(self, at_end: bool) -> float:
        """Writes what is new; its share of what the recorder holds."""
        text = self._take_dump()
        if not text:
            return 0
        dump = parse(text)
        ended = {_key(operation): operation for operation in dump.operations if operation.ended_ns}
        new = [operation for key, operation in ended.items() if key not in self._written]
        self._written = set(ended)
        self._count_missing(new)
        self._write(dump, new + (dump.in_flight if at_end else []))
        return len(new) / max(len(ended), 1)

    def _write(self, dump: Dump, operations: list[Operation]) -> None:
        events: list[Event] = []
        if self._file is None:
            self._file = self._open(dump.rank)
            events += process_events(dump)
        tracks = track_events(dump)
        events += [event for track, event in tracks.items() if track not in self._tracks]
        self._tracks |= set(tracks)
        for operation in operations:
            if operation.group in tracks:
                self._count += 1
                events += slices(dump, operation, f"{dump.rank}.{self._count}")
        self._file.write(events)

    def _open(self, rank: int) -> TraceFile:
        path = Path(self._name)
        if "{rank}" not in self._name:
            path = path.with_name(f"{path.stem}-{{rank}}{path.suffix}")
        return TraceFile(Path(str(path).replace("{rank}", str(rank))))

    def _count_missing(self, new: list[Operation]) -> None:
        for operation in new:
            if not operation.is_collective:
                continue
            newest = self._newest.get(operation.group, 0)
            self._missing += max(operation.sequence - newest - 1, 0)
            self._newest[operation.group] = max(operation.sequence, newest)


def _key(operation: Operation) -> tuple[int, str, int, int]:
    return operation.group, operation.name, operation.sequence, operation.queued_ns
