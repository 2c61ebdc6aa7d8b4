"""Finds processes of this host that listen under a name of a kind, and asks each of them.

Such a process listens on an abstract unix socket named KIND/PID/RANDOM, so it is found in
/proc/net/unix, and answers who connects with a text. Any process may listen under such a name. So
nothing is read from one until the kernel has said whose process it is.
Floor: rdmacoll/base. Thread: any.
"""

import os
import re
import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from .peer_user import peer_of, same_user
from .printable import printable

PAUSE_MS = 20  # before the next attempt to connect to those whose queue was full
PART_BYTES = 1 << 16


@dataclass(frozen=True)
class Answer:
    """Of a process that listens: its text, or why there is none."""

    pid: int
    text: str
    problem: str


def ask_listeners(kind: str, pids: set[int] | None, seconds: float, most: int) -> list[Answer]:
    """Asks this user's processes that listen under such a name; or those of `pids`, whoever's they
    are. most: bytes of an answer.

    All are asked at once, so one that does not answer delays no other.
    """
    deadline = time.monotonic() + seconds
    names = Path("/proc/net/unix").read_bytes()
    asking = [Question(name, pid, pids, most) for name, pid in listening(kind, names)]
    found: list[Answer] = []
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
    return sorted(found, key=lambda answer: answer.pid)


def listening(kind: str, names: bytes) -> list[tuple[bytes, int]]:
    """The abstract names of a kind in the content of /proc/net/unix, each with the pid in it.

    A name may occur several times, as an accepted connection has the name of its listener. It is
    the last word of a line.
    """
    name = re.compile(rb" @(%s/([0-9]{1,9})/[0-9a-f]{32})$" % re.escape(kind.encode()), re.M)
    return sorted({(match[1], int(match[2])) for match in name.finditer(names)})


def stat_of(pid: int) -> list[str]:
    """Its state, its parent and more. The name before them may hold anything, also a )."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        text = ""
    return text.rpartition(")")[2].split() or ["X", "0"]


class Question:
    """A question to one listener, until it has answered or proved to be none that is asked."""

    def __init__(self, name: bytes, pid: int, pids: set[int] | None, most: int) -> None:
        self.answer: Answer | None = None
        self.is_over = False
        self.sock: socket.socket | None = None
        self._name = name
        self._pid = pid  # from its name; once connected, from the kernel
        self._pids = pids
        self._most = most
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
        if self._bytes > self._most:
            self._end(f"answered more than {self._most} bytes")
        elif not part:
            self.answer = Answer(self._pid, b"".join(self._parts).decode(errors="replace"), "")
            self._end("")

    def _end(self, problem: str) -> None:
        self.is_over = True
        if problem:
            self.answer = Answer(self._pid, "", printable(problem))
        if self.sock is not None:
            self.sock.close()


def _owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1
