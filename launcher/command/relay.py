"""A relay: passes on one output of the process that rdmarun has started, as it is.

It reads no more than its sink has room for. So the writer waits, as it does for a full pipe.
Floor: launcher/command, in rdmarun. Thread: the main one.
"""

import fcntl
import os
import selectors
from collections.abc import Callable

from rdmacoll.launcher.base.sink import Sink

CHUNK_BYTES = 1 << 16


class Relay:
    def __init__(
        self,
        fd: int,
        sink: Sink,
        selector: selectors.BaseSelector,
        take: Callable[[bytes], bytes] = lambda data: data,
    ) -> None:
        """take: gets what was read, and returns what of it to pass on."""
        os.set_blocking(fd, False)  # for this end of the pipe only
        self._fd = fd
        self._sink = sink
        self._selector = selector
        self._take = take
        self._resume()

    def finish(self) -> None:
        """Takes what the pipe holds: the process has ended, though others may still write there."""
        left = fcntl.fcntl(self._fd, fcntl.F_GETPIPE_SZ)
        while left > 0 and (count := self._read()):
            left -= count

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
