"""A file of events for Perfetto that grows while a process runs.

It is a trace at any time, also after a SIGKILL: its format, a list of events, needs no closing
bracket. Floor: rdmacoll/debug. Thread: one at a time.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rdmacoll.base import files

Event = dict[str, Any]


class TraceFile:
    """Raises OSError, which names the path, where the file cannot be made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Its descriptor alone is used: a buffer would keep what the disk has had no room for.
        self._file = files.create(path)
        self._size = 0
        self._before = "\n"
        self._append("[")

    def write(self, events: Iterable[Event]) -> None:
        """OSError: the disk is full, say. The file ends with what was written before, then."""
        text = ",\n".join(map(json.dumps, events))
        if text:
            self._append(self._before + text)
            self._before = ",\n"

    def close(self) -> None:
        """The list has its bracket. Again, and after an error, it does nothing."""
        if not self._file.closed:
            with self._file:
                self._append("\n]\n")

    def _append(self, text: str) -> None:
        data = text.encode()
        try:
            _write_all(self._file.fileno(), data)
        except OSError as error:
            self._end_early()
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._size += len(data)

    def _end_early(self) -> None:
        with suppress(OSError), self._file:
            os.ftruncate(self._file.fileno(), self._size)  # the last event may lack its end
            os.lseek(self._file.fileno(), self._size, os.SEEK_SET)
            _write_all(self._file.fileno(), b"\n]\n")


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
