"""A file that a program has open, as Python and fsspec want it.

Floor: rdmacoll/files. Thread: one at a time.
"""

from __future__ import annotations

import io
from typing import Any

from .draft import Draft
from .entry import File
from .holder import Hold
from .reading import Reading

# What reads of a few bytes fetch: those of that size or more go to their place at once.
READ_BYTES = 1 << 20


class _Read(io.RawIOBase):
    """Of one version: another one that takes its place is not seen."""

    def __init__(self, reading: Reading, file: File, hold: Hold) -> None:
        self._reading = reading
        self._file = file
        self._hold = hold
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = _place(self._at, self._file.size, offset, whence)
        return self._at

    def readinto(self, buffer: Any) -> int:
        out = memoryview(buffer).cast("B")
        count = self._reading.read(self._file, self._at, out)
        self._at += count
        return count

    def close(self) -> None:
        super().close()
        self._hold.close()


class Reader(io.BufferedReader):
    """Its version is kept until it is closed."""

    def __init__(self, path: str, reading: Reading, file: File, hold: Hold) -> None:
        super().__init__(_Read(reading, file, hold), READ_BYTES)
        self.path = path
        self.size = file.size


class _Written(io.RawIOBase):
    """The bytes of a draft, from a place on that follows what is read and written."""

    def __init__(self, draft: Draft, may_read: bool, appends: bool) -> None:
        self._draft = draft
        self._may_read = may_read
        self._appends = appends
        self._at = draft.size if appends else 0

    def readable(self) -> bool:
        return self._may_read

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = _place(self._at, self._draft.size, offset, whence)
        return self._at

    def readinto(self, buffer: Any) -> int:
        if not self._may_read:
            raise io.UnsupportedOperation("not readable")
        count = self._draft.read(self._at, memoryview(buffer).cast("B"))
        self._at += count
        return count

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self._appends:
            self._at = self._draft.size
        self._draft.write(self._at, view)
        self._at += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        wanted = self._at if size is None else size
        if wanted < 0:
            raise ValueError(f"truncate({wanted}); give 0 bytes or more")
        self._draft.resize(wanted)
        return wanted


class _Commits(io.BufferedIOBase):
    """Of a file that is written: what is new is seen by others once it is closed, or committed."""

    path: str
    raw: Any
    _draft: Draft
    _autocommit: bool

    def close(self) -> None:
        """Raises what a write may raise; then the file is as it was before."""
        if self.closed:
            return
        try:
            super().close()
            if self._autocommit:
                self.commit()
        except BaseException:
            self.discard()
            raise

    def commit(self) -> None:
        if not self.closed:
            self.flush()
        self._draft.commit()

    def discard(self) -> None:
        self._draft.discard()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is not None and not self.closed:
            self.raw.close()  # so that nothing more is written
            self.discard()
        else:
            self.close()


class Writer(_Commits, io.BufferedWriter):
    def __init__(self, path: str, draft: Draft, autocommit: bool, appends: bool) -> None:
        io.BufferedWriter.__init__(self, _Written(draft, False, appends))
        self.path, self._draft, self._autocommit = path, draft, autocommit


class Changer(_Commits, io.BufferedRandom):
    """It reads what it has written, and what was there before it."""

    def __init__(self, path: str, draft: Draft, autocommit: bool) -> None:
        io.BufferedRandom.__init__(self, _Written(draft, True, False))
        self.path, self._draft, self._autocommit = path, draft, autocommit


def _place(at: int, size: int, offset: int, whence: int) -> int:
    begin = {io.SEEK_SET: 0, io.SEEK_CUR: at, io.SEEK_END: size}[whence]
    if begin + offset < 0:
        raise ValueError(f"seek({offset}, {whence}) is before the file's begin")
    return begin + offset
