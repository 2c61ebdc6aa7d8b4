"""Asks the ranks of this host for their flight recorders (torch_ext/join/flight_service.h answers).

A rank listens on an abstract unix socket, so it is found in /proc/net/unix, and answers from a
thread of its own: its main thread may be stuck in a wait, with the GIL. Any process may listen
under such a name. So nothing is read from one until the kernel has said whose process it is.
"""

import os
import re
import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from rdmacoll.base.peer_user import peer_of, same_user
from rdmacoll.base.printable import printable

from .dumps import MOST_BYTES, BadDump, Dump, parse
from .processes import Job, environ_of, job_of, stat_of

# As torch_ext/join/flight_service.cc makes names. The name is the last word of a line.
NAME = re.compile(rb" @(rdmacoll-debug/([0-9]{1,9})/[0-9a-f]{32})$", re.MULTILINE)
PAUSE_MS = 20  # before the next attempt to connect to those whose queue was full
PART_BYTES = 1 << 16


@dataclass(frozen=True)
class Asked:
    """A process that listens: its dump, or why there is none."""

    pid: int
    environ: dict[str, str]
    text: str
    dump: Dump | None
    problem: str

    @property
    def job(self) -> Job:
        return job_of(self.pid, self.environ)

    @property
    def is_server(self) -> bool:
        """It is of the job, but no rank of it (rdmarun --servers)."""
        return "RDMACOLL_SERVER" in self.environ


def ask_all(pids: set[int] | None, seconds: float) -> list[Asked]:
    """Asks this user's processes that have joined a group; or those of `pids`, whoever's they are.

    All are asked at once, so one that does not answer delays no other.
    """
    deadline = time.monotonic() + seconds
    asking = [Question(name, pid, pids) for name, pid in listening(_names())]
    found: list[Asked] = []
    while asking:
        is_late = time.monotonic() > deadline
        for question in asking:
            question.go_on(is_late)
        found += [question.answer for question in asking if question.answer is not None]
        asking = [question for question in asking if not question.is_over]
        poll = select.poll()
        for question in asking:
            if question.sock is not None:
                poll.register(question.sock, select.POLLIN)
        if asking:
            poll.poll(PAUSE_MS)
    return sorted(found, key=lambda asked: asked.pid)


def listening(names: bytes) -> list[tuple[bytes, int]]:
    """The abstract names of ranks in the content of /proc/net/unix, each with the pid in it.

    A name may occur several times, as an accepted connection has the name of its listener.
    """
    return sorted({(match[1], int(match[2])) for match in NAME.finditer(names)})


class Question:
    """A question to one listener, until it has answered or proved to be none that is asked."""

    def __init__(self, name: bytes, pid: int, pids: set[int] | None) -> None:
        self.answer: Asked | None = None
        self.is_over = False
        self.sock: socket.socket | None = None
        self._name = name
        self._pid = pid  # from its name; once connected, from the kernel
        self._pids = pids
        self._parts: list[bytes] = []
        self._bytes = 0

    def go_on(self, is_late: bool) -> None:
        """Does what can be done without waiting."""
        try:
            if self.sock is None:
                self._dial()
            while self.sock is not None and not self.is_over:
                self._hear(self.sock.recv(PART_BYTES))
        except BlockingIOError:
            pass
        except OSError as error:  # without a connection: it has ended
            self._end(f"did not answer: {error}" if self.sock is not None else "")
        if is_late and not self.is_over:
            stopped = " (it is stopped)" if stat_of(self._pid)[0] in ("T", "t") else ""
            # A stopped process whose queue others have filled cannot even be connected to.
            known = self.sock is not None or self._is_meant(self._pid, _owner(self._pid))
            self._end(f"did not answer{stopped}" if known else "")

    def _dial(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            sock.connect(b"\0" + self._name)
            pid, uid = peer_of(sock)
        except OSError:
            sock.close()
            raise
        if self._is_meant(pid, uid):
            self.sock, self._pid = sock, pid
        else:
            sock.close()
            self._end("")

    def _is_meant(self, pid: int, uid: int) -> bool:
        return same_user(uid) if self._pids is None else pid in self._pids

    def _hear(self, part: bytes) -> None:
        self._parts.append(part)
        self._bytes += len(part)
        if self._bytes > MOST_BYTES:
            self._end(f"answered more than {MOST_BYTES} bytes")
        elif not part:
            self._parse(b"".join(self._parts).decode(errors="replace"))

    def _parse(self, text: str) -> None:
        try:
            self.answer = Asked(self._pid, environ_of(self._pid), text, parse(text), "")
            self._end("")
        except BadDump as error:
            self._end(f"answered nothing of use: {error}")

    def _end(self, problem: str) -> None:
        self.is_over = True
        if problem:
            problem = printable(problem)
            self.answer = Asked(self._pid, environ_of(self._pid), "", None, problem)
        if self.sock is not None:
            self.sock.close()


def _names() -> bytes:
    return Path("/proc/net/unix").read_bytes()


def _owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1
