"""What a server does beside answering: it hears who calls, calls the other servers, keeps to the
map of buckets, and says what it does. Each is a thread of its own, so that none holds up another.

The map is read again and again, so that the server knows that it may go on; where others are lost
it asks for another map. Floor: rdmacoll/ps. Thread: each function in one of its own.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..servers.status import ENDED, MORE_MEMORY, ServerStatus
from .base.ending import MOST_FAILED, Ending, StoreLife
from .board import Board
from .freeing.collector import Collector

if TYPE_CHECKING:
    from .. import _C

LOOK_S = 0.05  # a few looks in a lease (kLeaseNs in csrc/ps/table/bucket_map.h)
WISH_S = 0.005  # that a server needs to see that its wish has come true
HEAR_S = 0.5  # between looks whether the server has ended
CALL_TIMEOUT_S = 10.0
MOST_ALONE = 200  # looks: about 10 s, in which a backup that is lost is replaced
DROP_TIMEOUT_S = 10.0
BEAT_S = 0.2
# What the Store refuses is said only after that long. One that is gone ends the server earlier,
# which says so: that is how each job ends.
SILENT_STORE_S = 1.5 * MOST_FAILED * BEAT_S
SAY_S = 1.0  # between what a server says that it does
MOST_SILENT = 15  # beats of this server's in which another one shows none


class Complaints:
    """What goes wrong, said once until it goes well again: it is tried again and again."""

    def __init__(self, ended: threading.Event, after_s: float = 0.0) -> None:
        """after_s: what goes wrong for a shorter time is not said."""
        self._ended = ended
        self._after_s = after_s
        self._since_s: float | None = None
        self._said = ""

    def went_well(self) -> None:
        self._since_s, self._said = None, ""

    def say(self, text: str) -> None:
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        if text == self._said or self._ended.is_set() or now_s < self._since_s + self._after_s:
            return
        print(f"rdmacoll.ps: {text}", file=sys.stderr)
        self._said = text


def hear(server: _C.PsServer, ended: threading.Event) -> None:
    complaints = Complaints(ended)
    while not ended.is_set():
        try:
            server.hear(HEAR_S)
        except Exception as error:  # one that calls and is wrong, or gone, is no end of the server
            complaints.say(f"a process that has called could not be met: {error}")


class Called:
    """Which start of each other server was called. What was given up is called again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: dict[int, int] = {}

    def note(self, other: int, start: int) -> bool:
        """Whether it is to be called."""
        with self._lock:
            is_new = self._starts.get(other) != start
            self._starts[other] = start
            return is_new

    def forget(self, other: int) -> None:
        with self._lock:
            self._starts.pop(other, None)


def others_of(board: Board, number: int) -> list[int]:
    """Servers may join at any time."""
    return [other for other in range(board.count_servers()) if other != number]


def call_others(
    server: _C.PsServer, board: Board, number: int, called: Called, ended: threading.Event
) -> None:
    """Calls each once for each of its starts."""
    complaints, of_store = Complaints(ended), Complaints(ended, SILENT_STORE_S)
    while not ended.wait(LOOK_S):
        try:
            others = others_of(board, number)
            of_store.went_well()
        except Exception as error:
            of_store.say(f"the job's Store does not say how many servers there are: {error}")
            continue
        for other in others:
            try:
                found = board.find_server(other)
                if found is not None and called.note(other, found[1]):
                    server.call(other, found[0], CALL_TIMEOUT_S)
            except Exception as error:
                complaints.say(f"server {other} could not be met: {error}")


def watch_others(
    server: _C.PsServer,
    board: Board,
    number: int,
    called: Called,
    life: StoreLife,
    ended: threading.Event,
) -> None:
    """Shows that this server runs, and gives up others that do not, until they do again.

    What counts is looks of this server's own: if the Store has stood still, all have.
    """
    complaints, of_store = Complaints(ended), Complaints(ended, SILENT_STORE_S)
    beats: dict[int, int] = {}
    silent: dict[int, int] = {}
    while not ended.wait(BEAT_S):
        try:
            board.beat(number)
            for other in others_of(board, number):
                beat = board.beats_of(other)
                if beat != beats.get(other, 0):
                    if silent.get(other, 0) >= MOST_SILENT:
                        called.forget(other)
                    beats[other], silent[other] = beat, 0
                elif beat > 0:
                    silent[other] += 1
                    if silent[other] == MOST_SILENT:
                        complaints.say(f"server {other} does not answer; others take over from it")
                        server.give_up(other)
            life.answered()
            complaints.went_well()
            of_store.went_well()
        except Exception as error:
            life.failed()
            of_store.say(f"the job's Store does not answer: {error}")


class Dropped:
    """How much of the log of drops a server has seen."""

    def __init__(self) -> None:
        self._drops = 0

    def look(self, board: Board, number: int, drop: Callable[[list[int]], None]) -> bool:
        """drop: of tables that are new there. Whether there were any."""
        tables, drops = board.drops.after(self._drops)
        if drops == self._drops:
            return False
        drop(tables)
        self._drops = drops
        board.drops.say_dropped(number, drops)
        return True


def pause(had_any: bool) -> float:
    """In seconds. Files that are written one after the other take the memory of those before."""
    return LOOK_S if had_any else BEAT_S


def free_dropped(
    server: _C.PsServer, board: Board, number: int, dropped: Dropped, ended: threading.Event
) -> None:
    complaints = Complaints(ended, SILENT_STORE_S)
    while not ended.is_set():
        had_any = False
        try:
            had_any = dropped.look(
                board, number, lambda tables: server.drop(tables, DROP_TIMEOUT_S)
            )
            complaints.went_well()
        except Exception as error:
            complaints.say(f"tables that were dropped could not be freed: {error}")
        ended.wait(pause(had_any))


def collect(board: Board, number: int, ended: threading.Event) -> None:
    """Frees tables of files that nobody needs, where no server of a lower number seems to run."""
    collector = Collector(board.words, board.drops, board.count)
    complaints = Complaints(ended, SILENT_STORE_S)
    beats = dict.fromkeys(range(number), 0)
    silent = dict.fromkeys(range(number), 0)
    had_any, beat_at = False, time.monotonic()
    while not ended.wait(pause(had_any)):
        had_any, is_beat = False, time.monotonic() >= beat_at
        if is_beat:
            beat_at = time.monotonic() + BEAT_S
        try:
            for other in range(number):
                beat = board.beats_of(other)
                silent[other] = 0 if beat != beats[other] else silent[other] + 1
                beats[other] = beat
                if silent[other] < MOST_SILENT:
                    collector.forget()
                    break
            else:
                had_any = collector.look(is_beat)
            complaints.went_well()
        except Exception as error:
            complaints.say(f"what files have no more could not be freed: {error}")


def watch_store(life: StoreLife, ending: Ending, ended: threading.Event) -> None:
    while not ended.wait(BEAT_S):
        if life.looks_gone():
            ending.end("the job's Store is gone: the job has ended, or the host of its rank 0")


def say_status(
    board: Board, status: Callable[[], ServerStatus], ending: Ending, ended: threading.Event
) -> None:
    """From time to time, and at the end that it has ended."""
    complaints = Complaints(ended, SILENT_STORE_S)
    has_ended = False
    while not has_ended:
        has_ended = ended.is_set()
        try:
            if not ending.is_failure:  # else another process may be this server by now
                board.say_status(replace(status(), state=ENDED) if has_ended else status())
            complaints.went_well()
        except Exception as error:
            complaints.say(f"what this server does cannot be told: {error}")
        if not has_ended:
            ended.wait(SAY_S)


class Superseded(Exception):
    """Another process is this server now."""


def superseded(number: int) -> str:
    return f"another process is server {number} of this job now"


def adopt(
    server: _C.PsServer, board: Board, number: int, start: int, buckets: bytes, known_ns: int
) -> None:
    """Raises Superseded where this map may give its buckets to a later start of this server.

    A later one claims to be this server before it gets any. So a map that was read before it was
    seen that there is no such claim is meant for this one.
    """
    if not board.holds(number, start):
        raise Superseded
    server.adopt(buckets, known_ns)


def keep_map(
    server: _C.PsServer,
    board: Board,
    number: int,
    start: int,
    ending: Ending,
    ended: threading.Event,
) -> None:
    of_store = Complaints(ended, SILENT_STORE_S)
    kept_once, had_room = Complaints(ended), Complaints(ended)
    looks_alone = 0
    while not ended.wait(WISH_S):
        try:
            server.wait_wish(LOOK_S)
            known_ns = server.now_ns()
            adopt(server, board, number, start, board.newest_map(), known_ns)
            wish = server.wish()
            if wish is not None:
                adopt(server, board, number, start, board.change_map(*wish), known_ns)
            stats = server.stats()
            looks_alone = looks_alone + 1 if stats["alone"] > 0 else 0
            if looks_alone == 0:
                kept_once.went_well()
            elif looks_alone >= MOST_ALONE:
                kept_once.say(
                    "parts of tables are at this server alone, and are lost with it: start two "
                    f"servers or more, or {MORE_MEMORY}"
                )
            if stats["without_room"] == 0:
                had_room.went_well()
            else:
                had_room.say(
                    f"server {number} has no room for parts of tables that it was to hold: start "
                    f"more servers, or {MORE_MEMORY}"
                )
            of_store.went_well()
        except Superseded:
            ending.end(superseded(number), is_failure=True)
        except Exception as error:  # the Store may be gone, and the job with it
            of_store.say(f"the map of buckets is not to be had: {error}")
            ended.wait(LOOK_S)  # a wish that waits would have it asked for all the time
