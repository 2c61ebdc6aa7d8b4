"""Output of ranks and servers: lines in through pipes, tagged lines out, copies in files, the last
lines kept for the report.

Nothing here blocks: when who reads our output stops reading, we stop reading theirs.
Floor: launcher/agent. Thread: the agent's.
"""

import fcntl
import os
import re
import selectors
from collections import deque
from collections.abc import Callable

from rdmacoll.launcher.base.sink import Sink

CHUNK_BYTES = 1 << 16
LINE_LIMIT_BYTES = 1 << 20  # a longer line is passed on in pieces
TAIL_LINES = 20
TAIL_LINE_BYTES = 4096  # of a longer line the end is kept

# The end of a line, \n or the \r of a progress bar, that is followed by more.
_LINE_END = re.compile(rb"(?:\n|\r(?!\n))(?=.)", re.DOTALL)


class Stream:
    """One of a process's two outputs, from its pipe to the sink and to its file."""

    def __init__(
        self,
        fd: int,
        sink: Sink | None,
        tag: Callable[[], bytes],
        file: int | None,
        selector: selectors.BaseSelector,
        on_file_error: Callable[[OSError], None],
    ) -> None:
        """It owns `fd` and `file`. Without a sink nothing is shown. tag: what begins a line; if it
        is empty, all bytes are passed on as they are."""
        os.set_blocking(fd, False)
        self._fd = fd
        self._sink = sink
        self._tag = tag
        self._file = file
        self._selector = selector
        self._on_file_error = on_file_error
        self._buffer = bytearray()
        self._at_line_start = True
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._resume()

    def drain(self) -> None:
        """Takes what the pipe holds: the process has ended, and this is the rest of its output.

        Others that have the pipe from it may write on. The sink may exceed its limit.
        """
        if self._fd < 0:
            return
        left = fcntl.fcntl(self._fd, fcntl.F_GETPIPE_SZ)
        while left > 0 and (count := self._read()):
            left -= count
        self._end_line()

    def close(self) -> None:
        """Takes what the pipe holds; what comes later is lost."""
        self.drain()
        self._close()

    def begin_line(self) -> None:
        self._at_line_start = True

    def _resume(self) -> None:
        if self._fd >= 0:
            self._selector.register(self._fd, selectors.EVENT_READ, self._on_readable)

    def _on_readable(self) -> None:
        if self._sink is not None and self._sink.full:
            self._selector.unregister(self._fd)
            self._sink.when_room(self._resume)
        else:
            self._read()

    def _read(self) -> int:
        """Bytes read; 0 when there is nothing yet, or at the end, where it closes."""
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._close()
            return 0
        self._copy(data)
        self._buffer += data
        # A \r at the very end waits for what follows it.
        end = 1 + max(self._buffer.rfind(b"\n"), self._buffer.rfind(b"\r", 0, -1))
        if end > 0:
            self._pass_on(end)
        if len(self._buffer) > LINE_LIMIT_BYTES:
            self._pass_on(len(self._buffer) - self._buffer.endswith(b"\r"))
        return len(data)

    def _pass_on(self, count: int) -> None:
        """The first `count` bytes of the buffer: whole lines, or a piece of a long one."""
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        finished = data.endswith((b"\n", b"\r"))
        self._keep_tail(data)
        if self._sink is None:
            return
        if not (tag := self._tag()):
            self._sink.write(data)
            return
        tagged = (
            _LINE_END.sub(lambda end: end[0] + tag, data)
            if b"\r" in data
            else data[:-1].replace(b"\n", b"\n" + tag) + data[-1:]
        )
        # The sink may call begin_line() of another stream here, but never of this one.
        self._sink.write(tag + tagged if self._at_line_start else tagged, self, finished)
        self._at_line_start = finished

    def _keep_tail(self, data: bytes) -> None:
        lines = data[: data.rfind(b"\n") + 1]
        first, *others = lines.rsplit(b"\n", TAIL_LINES + 1)[:-1] or [b""]
        for part in [first.rpartition(b"\n")[2], *others]:
            if line := part.rstrip().rpartition(b"\r")[2]:
                said = line[-TAIL_LINE_BYTES:].decode(errors="replace")
                self.tail.append(said if len(line) <= TAIL_LINE_BYTES else f"... {said}")

    def _copy(self, data: bytes) -> None:
        try:
            while self._file is not None and data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self._close_file()
            self._on_file_error(error)

    def _end_line(self) -> None:
        """Passes on the rest as a line of its own, also if it has no end."""
        if self._tag() and (self._buffer or not self._at_line_start):
            self._buffer += b"\n"
        elif self._buffer:
            self._keep_tail(bytes(self._buffer) + b"\n")
        if self._buffer:
            self._pass_on(len(self._buffer))

    def _close(self) -> None:
        if self._fd < 0:
            return
        self._end_line()
        if self._fd in self._selector.get_map():
            self._selector.unregister(self._fd)
        os.close(self._fd)
        self._fd = -1
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
