"""Horovod's timeline: a file that has a row for each name, with how long this rank has waited until
all had submitted it, and how long it has run. docs/HOROVOD.md says how it is read.

Rank 0 of the world writes it. A thread of its own looks at what is in flight, often, and sleeps
while nothing is. It is given times and no tensors, so none of these lives longer for it.
Floor: rdmacoll/horovod/names. Thread: any; start and stop one at a time.
"""

import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rdmacoll._extension import extension
from rdmacoll.debug.trace_file import Event, TraceFile

from .limits import read_switch

if TYPE_CHECKING:
    from .native import NamedTimes
    from .world import SetState

FILE = "HOROVOD_TIMELINE"
MARK_CYCLES = "HOROVOD_TIMELINE_MARK_CYCLES"
DYNAMIC = "DYNAMIC"  # in the place of a file: none before start_timeline()
LOOK_S = 0.02  # between two looks at what is in flight
MARKS_ROW = 0


@dataclass
class _Operation:
    kind: str  # as events are called
    key: tuple[str, str]  # of its row: its set, its name
    title: str  # of its row
    is_kept: bool  # the row serves others of this name
    bytes: int
    times: "NamedTimes"
    row: int = 0
    is_begun: bool = False  # in the file
    is_agreed: bool = False  # likewise

    def is_negotiated(self) -> bool:
        """Whether it has waited for a word of other ranks, or does."""
        return self.times.agreed_ns != self.times.submitted_ns


class Timeline:
    """A file that is written from now on. Raises OSError, which names it, if it cannot be made."""

    def __init__(self, path: str, mark_cycles: bool) -> None:
        self._file = TraceFile(Path(path))
        self._mark_cycles = mark_cycles
        self._start_ns = time.monotonic_ns()  # times in the file count from here
        self._start_of_day_us = time.time_ns() // 1000
        self._new: deque[_Operation] = deque()
        self._in_flight: list[_Operation] = []
        self._rows: dict[tuple[str, str], int] = {}
        self._numbers = count(MARKS_ROW + 1)
        self._optimizers: dict[str, int] = {}  # by their groups
        self._marked: set[int] = set()  # lately
        self._pid = os.getpid()
        self._is_written = True
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rdmacoll-timeline", daemon=True)
        self._thread.start()

    def add(self, operation: _Operation) -> None:
        if not self._is_written:
            return
        self._new.append(operation)
        if not self._wake.is_set():
            self._wake.set()

    def number_of(self, group: str) -> int:
        """Of an optimizer, as they come."""
        return self._optimizers.setdefault(group, len(self._optimizers))

    def close(self) -> None:
        """What is in flight ends in the file now. Nothing in a forked child, where the thread is
        not."""
        if os.getpid() != self._pid:
            return
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._write_on()
        except OSError as error:
            self._is_written = False
            self._new.clear()
            self._in_flight.clear()
            print(
                f"rdmacoll.horovod: the timeline ends here, and all else goes on: {error}",
                file=sys.stderr,
            )

    def _write_on(self) -> None:
        start = {"start_time_since_epoch_in_micros": self._start_of_day_us}  # as Horovod says it
        self._file.write([_said(MARKS_ROW, "start_time", start)])
        if self._mark_cycles:
            self._file.write([_called(MARKS_ROW, "batches")])
        while not self._stop.is_set():
            self._wake.wait()
            self._stop.wait(LOOK_S)
            self._wake.clear()  # before the look: what comes meanwhile sets it again
            self._look(0)
            if self._in_flight:
                self._wake.set()
        self._look(time.monotonic_ns())
        self._file.close()

    def _look(self, end_ns: int) -> None:
        """end_ns: when what has not ended is taken to end; 0: it goes on."""
        events: list[Event] = []
        agreed: set[int] = set()
        self._in_flight += [self._new.popleft() for _ in range(len(self._new))]
        left = []
        for operation in self._in_flight:
            was_agreed = operation.is_agreed
            ended_ns = operation.times.ended_ns or end_ns
            events += self._news_of(operation, ended_ns)
            if operation.is_agreed and not was_agreed and operation.is_negotiated():
                agreed.add(operation.times.agreed_ns)
            if not ended_ns:
                left.append(operation)
            elif not operation.is_kept:
                self._rows.pop(operation.key, None)
        self._in_flight = left
        if self._mark_cycles and agreed:
            events += map(self._mark, sorted(agreed - self._marked))
            self._marked = agreed
        self._file.write(events)

    def _news_of(self, operation: _Operation, ended_ns: int) -> Iterator[Event]:
        """What is not in the file yet. ended_ns: read before the other times; 0: not yet."""
        times = operation.times
        agreed_ns = times.agreed_ns
        negotiated = operation.is_negotiated()
        if not operation.is_begun:
            operation.is_begun = True
            if operation.key not in self._rows:
                self._rows[operation.key] = next(self._numbers)
                yield _called(self._rows[operation.key], operation.title)
            operation.row = self._rows[operation.key]
            if negotiated:
                name = f"NEGOTIATE_{operation.kind}"
                yield self._event(operation.row, "B", times.submitted_ns, name=name)
        if agreed_ns and not operation.is_agreed:
            operation.is_agreed = True
            if negotiated:
                yield self._event(operation.row, "E", agreed_ns)
            args = {"bytes": operation.bytes}
            yield self._event(operation.row, "B", agreed_ns, name=operation.kind, args=args)
        if ended_ns:
            state = "failed" if times.has_failed else "done" if times.ended_ns else "in flight"
            at_ns = max(ended_ns, agreed_ns)
            yield self._event(operation.row, "E", at_ns, args={"state": state})

    def _mark(self, at_ns: int) -> Event:
        return self._event(MARKS_ROW, "i", at_ns, name="CYCLE_START", s="g")

    def _event(self, row: int, phase: str, at_ns: int, **more: Any) -> Event:
        return {"pid": row, "tid": 0, "ph": phase, "ts": (at_ns - self._start_ns) / 1e3, **more}


def _called(row: int, title: str) -> Event:
    return _said(row, "process_name", {"name": title})


def _said(row: int, name: str, args: dict[str, Any]) -> Event:
    return {"pid": row, "ph": "M", "name": name, "args": args}


_timeline: Timeline | None = None


def is_on() -> bool:
    """Whether there is somebody to note operations for."""
    return _timeline is not None


def note(
    state: "SetState",
    kind: str,
    name: str,
    is_kept: bool,
    tensors: Sequence[torch.Tensor],
    times: "NamedTimes",
) -> None:
    """An operation of a set that was submitted. is_kept: its name may come again."""
    from .world import current

    timeline = _timeline
    if timeline is None:
        return
    of_all = current().sets.get(0) is state
    title = name if of_all else f"{name} (ranks {', '.join(map(str, state.ranks))})"
    total = sum(tensor.nbytes for tensor in tensors)
    timeline.add(_Operation(kind.upper(), (state.name, name), title, is_kept, total, times))


def note_bucket(backend: Any, number: int, memory: torch.Tensor, work: Any, begun_ns: int) -> None:
    """An allreduce of an optimizer's gradients, which has no name and needs no agreement."""
    timeline = _timeline
    if timeline is None:
        return
    group = backend.options.group_name
    title = f"allreduce.gradients.{timeline.number_of(group)}.bucket.{number}"
    times = extension().times_of(work, begun_ns)
    timeline.add(_Operation("ALLREDUCE", (group, title), title, True, memory.nbytes, times))


def begin(rank: int) -> None:
    """With the file that the environment names, if it does; `rank`: this one's.

    Raises OSError for a file that cannot be made, ValueError for variables that make no sense.
    """
    mark_cycles = read_switch(MARK_CYCLES)
    path = os.environ.get(FILE, "")
    if path and path != DYNAMIC and rank == 0:
        _open(path, mark_cycles, f"{FILE}={path}")


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
    """Rank 0 writes its operations from now on into this file; other ranks do nothing.

    mark_cycles: with a mark at each time at which operations have begun to run. A timeline that is
    written ends before. Raises ValueError before init(), and OSError for a file that cannot be
    made; what is written goes on, then.
    """
    from .world import rank

    path = os.fspath(file_path)
    if rank() != 0:
        return
    if not path:
        raise ValueError("start_timeline(''): name a file")
    _open(path, bool(mark_cycles), f"start_timeline({path!r})")


def stop_timeline() -> None:
    """The file is complete when it returns. Does nothing where none is written.

    Raises ValueError before init().
    """
    from .world import current

    current()
    end()


def _open(path: str, mark_cycles: bool, asked: str) -> None:
    global _timeline
    try:
        timeline = Timeline(path, mark_cycles)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{asked}: {error.strerror}; name a file in a folder that is there, where this user "
            "may write",
        ) from error
    end()
    _timeline = timeline


def end() -> None:
    """Completes the file, if one is written."""
    global _timeline
    timeline, _timeline = _timeline, None
    if timeline is not None:
        timeline.close()


# Where a script ends without shutdown() the file is complete all the same.
atexit.register(end)
