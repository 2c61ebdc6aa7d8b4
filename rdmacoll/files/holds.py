"""Holds: opens a version of a file so that it is kept, and gives a name to one that is new.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .board import FileBoard
from .entry import Entry, File
from .folders import At, Folders, ReplacedMeanwhile, error
from .holder import Hold, Holder


class Holds:
    def __init__(self, board: FileBoard, folders: Folders, holder: Holder) -> None:
        self._board = board
        self._folders = folders
        self._holder = holder
        self._doubtful: set[int] = set()  # tables that folders may name or not

    def open(self, at: At) -> tuple[File, Hold]:
        """The newest version. Servers keep it until the hold is closed, also when the file is
        replaced or removed. Raises IsADirectoryError; else as Folders.find()."""
        file = as_file(self._folders.find(at), at.path)
        while True:
            hold = self._holder.hold(file.tables)
            # Only what has its name still is kept: what has lost it may be freed by now.
            newest = as_file(self._folders.find(at), at.path) if file.parts else file
            if newest.parts == file.parts:
                return newest, hold
            hold.close()
            file = newest

    def hold(self, at: At, file: File) -> Hold:
        """This version. Raises OSError (ESTALE) where another one has the name."""
        hold = self._holder.hold(file.tables)
        if self._folders.look(at) != file:
            hold.close()
            raise error(errno.ESTALE, at.path)
        return hold

    def put(
        self, at: At, file: File, made: Iterable[int], base: Hold | None, *, only_new: bool = False
    ) -> Hold:
        """As Folders.put(); frees what is replaced, and holds the new version.

        made: of its tables those that this process has made. base: of the version that has the
        others; None: there are none. Raises OSError (ESTALE) where this process has stood still for
        so long that they may be no more: then the file is as it was."""
        new = list(made)
        kept = set(file.tables).difference(new)
        also = base if kept else None
        self._check(new, also)
        with self._noting(new):
            try:
                before = self._folders.put(at, file, only_new=only_new, kept=kept)
            except ReplacedMeanwhile:
                with self._board.naming_again(kept):
                    before = self._folders.put(at, file, only_new=only_new)
            return self._named(at, before, file, new, also)

    def append(self, at: At, added: File, made: Iterable[int]) -> tuple[File, Hold]:
        """As Folders.append(), of parts that are new; the file after it. Else as put()."""
        new = list(made)
        self._check(new, None)
        with self._noting(new):
            before, after = self._folders.append(at, added)
            return after, self._named(at, before, after, new, None)

    def free(self, made: Iterable[int]) -> None:
        """Tables that this process has made and does not need, whatever became of their names."""
        tables = list(made)
        doubtful = self._doubtful.intersection(tables)
        if doubtful:
            with self._board.naming_again(doubtful):
                pass
            self._doubtful -= doubtful
        self._board.throw_away(tables)
        self._holder.forget(tables)

    @contextmanager
    def _noting(self, new: list[int]) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            # Ctrl-C may have come, or the Store have failed, as a folder had just named them.
            is_refused = isinstance(error, OSError) and error.errno != errno.EIO
            if not is_refused:
                self._doubtful.update(new)
            raise

    def _check(self, new: list[int], also: Hold | None) -> None:
        if new or also is not None:
            self._holder.check(new, also)

    def _named(
        self, at: At, before: File | None, after: File, new: list[int], also: Hold | None
    ) -> Hold:
        lost = set() if before is None else set(before.tables) - set(after.tables)
        try:
            # A version that another process puts in its place is not seen: who writes it goes on.
            hold = self._holder.named(new, also, after.tables)
        except OSError:
            if not self._folders.take_back(at, before, after):
                self._board.throw_away(sorted(lost))
            raise
        self._board.throw_away(sorted(lost))
        return hold


def as_file(entry: Entry, path: str) -> File:
    """Raises IsADirectoryError."""
    if isinstance(entry, File):
        return entry
    raise error(errno.EISDIR, path)
