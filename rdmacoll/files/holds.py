"""Holds: opens a version of a file so that it is kept, and gives a name to one that is new.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import os

from .board import FileBoard
from .entry import Entry, File, Part
from .holder import Hold, Holder
from .tree import Path, Tree


class Holds:
    def __init__(self, board: FileBoard, tree: Tree, holder: Holder) -> None:
        self._board = board
        self._tree = tree
        self._holder = holder

    def open(self, path: Path) -> tuple[File, Hold]:
        """The newest version. Servers keep it until the hold is closed, also when the file is
        replaced or removed. Raises IsADirectoryError; else as Tree.find()."""
        folder = self._tree.folder_of(path)
        file = as_file(self._tree.find_in(folder, path), path)
        while True:
            hold = self._holder.hold(file.tables)
            # Only what has its name still is kept: what has lost it may be freed by now.
            newest = as_file(self._tree.find_in(folder, path), path) if file.parts else file
            if newest.parts == file.parts:
                return newest, hold
            hold.close()
            file = newest

    def put(
        self, path: Path, parts: tuple[Part, ...], *, only_new: bool = False, append: bool = False
    ) -> tuple[Part, ...]:
        """As Tree.put(), of parts that this process has made. Raises OSError (ESTALE) where it has
        stood still for so long that they may be no more: then the file is as it was."""
        tables = [part.table for part in parts]
        if tables:
            self._holder.check(tables)
        had = self._tree.put(path, parts, only_new=only_new, append=append)
        try:
            if tables:
                self._holder.named(tables)
        except OSError:
            if not self._tree.take_back(path, parts, had):
                self._board.throw_away(File(had, 0).tables)
            raise
        return had


def as_file(entry: Entry, path: Path) -> File:
    """Raises IsADirectoryError."""
    if isinstance(entry, File):
        return entry
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), "/".join(path))
