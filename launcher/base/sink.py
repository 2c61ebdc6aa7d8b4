"""A sink: standard output or standard error, written by a thread, so that a reader that is slow
holds up nothing else.

Non-blocking writes would not do: the flag would hold for all who share the descriptor, the user's
shell among them, and files ignore it.
Floor: launcher/base. Thread: the loop's, and the writer's own.
"""

import fcntl
import os
import select
import selectors
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from .limits import start_thread

# Of bytes that wait to be written. A full sink gets no more, but for the rest that the pipe of an
# ended process holds.
LIMIT_BYTES = 8 << 20
CHUNK_BYTES = 1 << 18


class Source(Protocol):
    """A writer of lines that may come in pieces."""

    def begin_line(self) -> None:
        """The line that it has begun was ended for another's; its next piece begins a new one."""


class Sink:
    """Takes bytes at once and writes them when it can. After an error it drops what it takes."""

    def __init__(self, fd: int, selector: selectors.BaseSelector, in_packets: bool = False) -> None:
        """in_packets: writes whole lines as packets of the pipe, of which each read returns one.

        mpiexec passes on the outputs of several agents, read by read; so lines that fit in a packet
        are not torn.
        """
        self._fd = fd
        self._in_packets = in_packets and _make_packets(fd)
        self._selector = selector
        self._changed = threading.Condition()
        # This and the next three are changed under the lock of _changed.
        self._pending = bytearray()
        self._closed = False
        self._waiting: list[Callable[[], None]] = []
        self._limit_bytes = LIMIT_BYTES
        self._unfinished: Source | None = None  # whose line has begun, and not ended
        self.error: OSError | None = None
        self.on_error: Callable[[OSError], None] = lambda _: None  # called from the loop
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        selector.register(self._woken, selectors.EVENT_READ, self._on_woken)
        self._thread = start_thread(self._write_all)

    @property
    def full(self) -> bool:
        return len(self._pending) > self._limit_bytes

    @property
    def pending_bytes(self) -> int:
        return len(self._pending)

    def raise_limit(self, limit_bytes: int) -> None:
        with self._changed:
            self._limit_bytes = limit_bytes
            self._wake_waiting()

    def when_room(self, resume: Callable[[], None]) -> None:
        """Has the loop call this once the sink is not full, or drops what it takes."""
        with self._changed:
            self._waiting.append(resume)
            self._wake_waiting()

    def say(self, text: str) -> None:
        """A line of the launcher's own."""
        self.write(f"rdmarun: {text}\n".encode(errors="backslashreplace"))

    def write(self, data: bytes, source: Source | None = None, finished: bool = True) -> None:
        """finished: the bytes end a line. If not, it is ended before bytes of another source."""
        if self._unfinished is not None and self._unfinished is not source:
            self._unfinished.begin_line()
            data = b"\n" + data
        self._unfinished = None if finished else source
        with self._changed:
            if self.error is None:
                self._pending += data
                self._changed.notify_all()

    def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until all is written or dropped; False if it is not in time.

        Handlers of signals run meanwhile.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending, timeout_s)

    def close(self) -> None:
        """Call it after flush(). Then another sink may write there."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._selector.unregister(self._woken)
        os.close(self._woken)
        os.close(self._wake)

    def _on_woken(self) -> None:
        os.read(self._woken, 4096)
        if self.error is not None:
            error, self.on_error, on_error = self.error, lambda _: None, self.on_error
            on_error(error)
        with self._changed:
            waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume()

    def _write_all(self) -> None:
        while (chunk := self._next_chunk()) is not None:
            try:
                written = os.write(self._fd, chunk)
            except BlockingIOError:  # another process that shares it has made it non-blocking
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                poll.poll()
                continue
            except OSError as error:
                with self._changed:
                    self.error = error
                    self._pending.clear()
                    self._changed.notify_all()
                    self._wake_loop()
                return
            with self._changed:
                del self._pending[:written]
                if not self._pending:
                    self._changed.notify_all()
                self._wake_waiting()

    def _next_chunk(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._closed)
            if not self._in_packets:
                return bytes(self._pending[:CHUNK_BYTES]) or None
            packet = bytes(self._pending[: select.PIPE_BUF])
            return packet[: packet.rfind(b"\n") + 1] or packet or None

    def _wake_waiting(self) -> None:
        if self._waiting and (not self.full or self.error is not None):
            self._wake_loop()

    def _wake_loop(self) -> None:
        with suppress(BlockingIOError):  # it is readable already
            os.write(self._wake, b"\0")


def _make_packets(fd: int) -> bool:
    """Whether each write is a packet from now on; only a pipe can do that."""
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_DIRECT)
        return True
    return False
