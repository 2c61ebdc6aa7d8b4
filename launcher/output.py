"""Output of the ranks: lines in through pipes, tagged lines out, copies in files, the last lines
kept for the report.

Nothing here blocks: when who reads our output stops reading, we stop reading the ranks'.
Floor: launcher. Thread: the agent's.
"""

import os
import re
import selectors
from collections import deque
from collections.abc import Callable
from pathlib import Path

CHUNK_BYTES = 1 << 16
PIPE_LIMIT_BYTES = 1 << 20  # the most that Linux gives a user's pipe
PENDING_LIMIT_BYTES = 1 << 20  # of a sink: beyond it the ranks wait
LINE_LIMIT_BYTES = 1 << 20  # a longer line is passed on in pieces
TAIL_LINES = 20

# A line ends with \n, or with the \r of a progress bar.
_LINE_END = re.compile(rb"\n|\r(?=[^\n])")


class Sink:
    """Our own stdout or stderr, written without blocking."""

    def __init__(self, fd: int, selector: selectors.BaseSelector) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._selector = selector
        self._pending = bytearray()
        self._waiting: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        return len(self._pending) > PENDING_LIMIT_BYTES

    def when_drained(self, resume: Callable[[], None]) -> None:
        self._waiting.append(resume)

    def say(self, text: str) -> None:
        """A line of the launcher's own."""
        self.write(f"rdmarun: {text}\n".encode())

    def write(self, data: bytes) -> None:
        registered = bool(self._pending)
        self._pending += data
        self._write_some()
        if self._pending and not registered:
            self._selector.register(self._fd, selectors.EVENT_WRITE, self._on_writable)

    def flush(self) -> None:
        """Writes what is pending and waits for it: at the end, when nothing else is left to do."""
        if self._pending:
            self._selector.unregister(self._fd)
            os.set_blocking(self._fd, True)
            self._write_some()

    def _on_writable(self) -> None:
        self._write_some()
        if not self._pending:
            self._selector.unregister(self._fd)
            waiting, self._waiting = self._waiting, []
            for resume in waiting:
                resume()

    def _write_some(self) -> None:
        try:
            while self._pending:
                del self._pending[: os.write(self._fd, self._pending)]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more; that ends the job elsewhere
            self._pending.clear()


class RankStream:
    """One of a rank's two outputs, from its pipe to the sink and to its file."""

    def __init__(
        self, fd: int, sink: Sink, tag: bytes, file: Path | None, selector: selectors.BaseSelector
    ) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._sink = sink
        self._tag = tag
        self._file = None if file is None else file.open("ab", buffering=0)
        self._selector = selector
        self._buffer = bytearray()
        self._at_line_start = True
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._resume()

    def drain(self) -> None:
        """Takes what the pipe still holds and closes it: for when the rank has ended."""
        if self._fd >= 0:
            for _ in range(PIPE_LIMIT_BYTES // CHUNK_BYTES):  # a child of the rank's may go on
                if not self._read():
                    break
            self._close()

    def _resume(self) -> None:
        if self._fd >= 0:
            self._selector.register(self._fd, selectors.EVENT_READ, self._on_readable)

    def _on_readable(self) -> None:
        if self._sink.full:
            self._selector.unregister(self._fd)
            self._sink.when_drained(self._resume)
        elif self._read() == 0:
            self._close()

    def _read(self) -> int | None:
        """Bytes read; 0 at the end, None when there is nothing yet."""
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return None
        if self._file is not None:
            self._file.write(data)
        self._buffer += data
        end = 0
        for line_end in _LINE_END.finditer(self._buffer):
            self._pass_on(bytes(self._buffer[end : line_end.end()]))
            end = line_end.end()
        del self._buffer[:end]
        if len(self._buffer) > LINE_LIMIT_BYTES:
            self._pass_on(bytes(self._buffer))
            self._buffer.clear()
        return len(data)

    def _pass_on(self, piece: bytes) -> None:
        self._sink.write(self._tag + piece if self._at_line_start else piece)
        self._at_line_start = piece.endswith((b"\n", b"\r"))
        if piece.endswith(b"\n") and piece.strip():
            self.tail.append(piece.decode(errors="replace").rstrip())

    def _close(self) -> None:
        if self._buffer:
            self._pass_on(bytes(self._buffer) + b"\n")
            self._buffer.clear()
        if self._fd in self._selector.get_map():
            self._selector.unregister(self._fd)
        os.close(self._fd)
        self._fd = -1
        if self._file is not None:
            self._file.close()
