"""What a server does beside answering: it hears who calls, calls the other servers, and keeps to
the map of buckets. Each is a thread of its own, so that none holds up another one.

The map is read again and again, so that the server knows that it may go on; where others are lost
it asks for another map. Floor: rdmacoll/ps. Thread: each function in one of its own.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from .board import Board

if TYPE_CHECKING:
    from .. import _C

LOOK_S = 0.05  # a few looks in a lease (kLeaseNs in csrc/ps/server/state.h)
HEAR_S = 0.5  # between looks whether the server has ended
CALL_TIMEOUT_S = 10.0
MOST_ALONE = 200  # looks: about 10 s, in which a backup that is lost is replaced
BEAT_S = 0.2
MOST_SILENT = 15  # beats of this server's in which another one shows none


class Complaints:
    """What goes wrong, said once until it goes well again: it is tried again and again."""

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._said = ""

    def went_well(self) -> None:
        self._said = ""

    def say(self, text: str) -> None:
        if text != self._said and not self._ended.is_set():
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


def call_others(
    server: _C.PsServer, board: Board, others: list[int], called: Called, ended: threading.Event
) -> None:
    """Calls each once for each of its starts."""
    complaints = Complaints(ended)
    while not ended.wait(LOOK_S):
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
    others: list[int],
    called: Called,
    ended: threading.Event,
) -> None:
    """Shows that this server runs, and gives up others that do not, until they do again.

    What counts is looks of this server's own: if the Store has stood still, all have.
    """
    complaints = Complaints(ended)
    beats = dict.fromkeys(others, 0)
    silent = dict.fromkeys(others, 0)
    while not ended.wait(BEAT_S):
        try:
            board.beat(number)
            for other in others:
                beat = board.beats_of(other)
                if beat != beats[other]:
                    if silent[other] >= MOST_SILENT:
                        called.forget(other)
                    beats[other], silent[other] = beat, 0
                elif beat > 0:
                    silent[other] += 1
                    if silent[other] == MOST_SILENT:
                        complaints.say(f"server {other} does not answer; others take over from it")
                        server.give_up(other)
            complaints.went_well()
        except Exception as error:
            complaints.say(f"the job's Store does not answer: {error}")


def keep_map(server: _C.PsServer, board: Board, ended: threading.Event) -> None:
    complaints, kept_once = Complaints(ended), Complaints(ended)
    looks_alone = 0
    while not ended.wait(LOOK_S):
        try:
            known_ns = server.now_ns()
            server.adopt(board.newest_map(), known_ns)
            wish = server.wish()
            if wish is not None:
                server.adopt(board.change_map(*wish), known_ns)
            looks_alone = looks_alone + 1 if server.stats()["alone"] > 0 else 0
            if looks_alone == 0:
                kept_once.went_well()
            elif looks_alone >= MOST_ALONE:
                kept_once.say(
                    "parts of tables are at this server alone, and are lost with it: start two "
                    "servers or more, or raise --server-memory"
                )
            complaints.went_well()
        except Exception as error:  # the Store may be gone, and the job with it
            complaints.say(f"the map of buckets is not to be had: {error}")
