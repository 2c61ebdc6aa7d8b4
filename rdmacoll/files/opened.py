"""A file that a program has open, as Python and fsspec want it.

Floor: rdmacoll/files. Thread: one at a time.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from .contents import Contents
from .entry import File, Part
from .holder import Hold

PART_BYTES = 16 << 20
# What reads of a few bytes fetch: those of that size or more go to their place at once.
READ_BYTES = 1 << 20


class _Bytes(io.RawIOBase):
    """Of one version: another one that takes its place is not seen."""

    def __init__(self, contents: Contents, file: File, hold: Hold) -> None:
        self._contents = contents
        self._file = file
        self._hold = hold
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        if begin + offset < 0:
            raise ValueError(f"seek({offset}, {whence}) is before the file's begin")
        self._at = begin + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        out = memoryview(buffer).cast("B")
        count = self._contents.read(self._file.parts, self._at, out)
        self._at += count
        return count

    def close(self) -> None:
        super().close()
        self._hold.close()


class Reader(io.BufferedReader):
    """Its version is kept until it is closed."""

    def __init__(self, path: str, contents: Contents, file: File, hold: Hold) -> None:
        super().__init__(_Bytes(contents, file, hold), READ_BYTES)
        self.path = path
        self.size = file.size


class Writer(io.BufferedIOBase):
    """What is written is a new version of the file, once it is closed, or committed."""

    def __init__(
        self,
        path: str,
        contents: Contents,
        begin: int,
        autocommit: bool,
        put: Callable[[tuple[Part, ...]], None],
    ) -> None:
        """begin: bytes that are there already, before what is written. put: gives the file its name
        once servers have what was written."""
        self.path = path
        self._contents = contents
        self._at = begin
        self._own: list[Part] = []
        self._open = bytearray()
        self._autocommit = autocommit
        self._put = put

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError(f"{self.path!r} is closed")
        view = memoryview(data).cast("B")
        for first in range(0, len(view), PART_BYTES):
            self._open += view[first : first + PART_BYTES]
            if len(self._open) >= PART_BYTES:
                self._write(PART_BYTES)
        self._at += len(view)
        return len(view)

    def _write(self, size: int) -> None:
        with memoryview(self._open) as whole, whole[:size] as part:
            self._own.append(self._contents.write(part))
        del self._open[:size]

    def close(self) -> None:
        """Raises what a write may raise; then the file is as it was before."""
        if self.closed:
            return
        super().close()
        try:
            if self._open:
                self._write(len(self._open))
            if self._autocommit:
                self.commit()
        except BaseException:
            self.discard()
            raise

    def commit(self) -> None:
        self._put(tuple(self._own))
        self._own = []

    def discard(self) -> None:
        self._contents.free(self._own)
        self._own = []
        self._open.clear()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is None:
            self.close()
        elif not self.closed:
            super().close()
            self.discard()
