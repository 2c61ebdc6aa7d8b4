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


class Words:
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
    words = Words(ended)
    while not ended.is_set():
        try:
            server.hear(HEAR_S)
        except Exception as error:  # one that calls and is wrong, or gone, is no end of the server
            words.say(f"a process that has called could not be met: {error}")


def call_others(
    server: _C.PsServer, board: Board, others: list[int], ended: threading.Event
) -> None:
    """Calls each once for each of its starts."""
    words = Words(ended)
    called: dict[int, int] = {}
    while not ended.wait(LOOK_S):
        for other in others:
            try:
                found = board.find_server(other)
                if found is None or called.get(other) == found[1]:
                    continue
                called[other] = found[1]
                server.call(other, found[0], CALL_TIMEOUT_S)
            except Exception as error:
                words.say(f"server {other} could not be met: {error}")


def keep_map(server: _C.PsServer, board: Board, ended: threading.Event) -> None:
    words = Words(ended)
    while not ended.wait(LOOK_S):
        try:
            known_ns = server.now_ns()
            server.adopt(board.newest_map(), known_ns)
            wish = server.wish()
            if wish is not None:
                server.adopt(board.change_map(*wish), known_ns)
            words.went_well()
        except Exception as error:  # the Store may be gone, and the job with it
            words.say(f"the map of buckets is not to be had: {error}")
