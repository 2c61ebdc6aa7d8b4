"""A relay: one output of what rdmarun has started, passed on as it is.

It reads no more than its sink has room for, so that who writes waits, as in a pipe.
Floor: launcher, in rdmarun. Thread: the main one.
"""

import os
import selectors
from collections.abc import Callable

from .sink import Sink

CHUNK_BYTES = 1 << 16


class Relay:
    def __init__(
        self,
        fd: int,
        sink: Sink,
        selector: selectors.BaseSelector,
        take: Callable[[bytes], bytes] = lambda data: data,
    ) -> None:
        """take: what shall be passed on of what was read."""
        os.set_blocking(fd, False)  # our end: who writes has a description of its own
        self._fd = fd
        self._sink = sink
        self._selector = selector
        self._take = take
        self._resume()

    def finish(self) -> None:
        """Takes what the pipe holds: who writes has ended."""
        while self._read():
            pass

    def _resume(self) -> None:
        self._selector.register(self._fd, selectors.EVENT_READ, self._on_readable)

    def _on_readable(self) -> None:
        if self._sink.full:
            self._selector.unregister(self._fd)
            self._sink.when_room(self._resume)
        elif self._read() == 0:
            self._selector.unregister(self._fd)

    def _read(self) -> int | None:
        """Bytes read; 0 at the end, None when there is nothing yet."""
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return None
        self._sink.write(self._take(data))
        return len(data)
