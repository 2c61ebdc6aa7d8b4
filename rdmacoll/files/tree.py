"""Tree: which names there are, by paths.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from .board import FileBoard
from .entry import Entry, File, Folder, Part
from .folders import Entries, Folders, error, exchange, place

T = TypeVar("T")
ROOT = 0  # the number of the folder that is always there
# A path is its names: no slash is in them, and none is empty.
Path = tuple[str, ...]


def _now_ns() -> int:
    return time.time_ns()


class Tree:
    def __init__(self, board: FileBoard) -> None:
        self._board = board
        self._folders = Folders(board)

    def find(self, path: Path) -> Entry:
        """Raises FileNotFoundError, NotADirectoryError."""
        entry: Entry = Folder(ROOT, 0)
        for depth, name in enumerate(path):
            entries = self._names(self._folder(entry, path[:depth]), path[:depth])
            if name not in entries:
                raise _error(errno.ENOENT, path)
            entry = entries[name]
        return entry

    def folder_of(self, path: Path) -> int:
        """The number of the folder that it is in. Raises as find() of that folder."""
        return self._folder(self.find(path[:-1]), path[:-1])

    def find_in(self, folder: int, path: Path) -> Entry:
        """As find(), by one look, where the folder that it is in is known."""
        if not path:
            return Folder(ROOT, 0)
        return _named(self._names(folder, path[:-1]), path[-1], path)

    def list(self, path: Path) -> dict[str, Entry]:
        """Raises FileNotFoundError, NotADirectoryError."""
        return self._names(self._folder(self.find(path), path), path)

    def make_folder(self, path: Path) -> None:
        """Raises FileExistsError; else as find() of the folder that it is in."""

        def make(entries: Entries, name: str) -> None:
            if name in entries:
                raise _error(errno.EEXIST, path)
            entries[name] = Folder(self._board.next_folder(), _now_ns())

        self._change(path, make)

    def put(
        self, path: Path, parts: tuple[Part, ...], *, only_new: bool = False, append: bool = False
    ) -> tuple[Part, ...]:
        """Gives the name to a file of these parts, or of those that it has and these. Returns what
        it had, and has no more. Raises IsADirectoryError, FileExistsError; else as find() of the
        folder that it is in."""

        def put(entries: Entries, name: str) -> tuple[Part, ...]:
            before = entries.get(name)
            if isinstance(before, Folder):
                raise _error(errno.EISDIR, path)
            if before is not None and only_new:
                raise _error(errno.EEXIST, path)
            had = () if before is None else before.parts
            entries[name] = File((*had, *parts) if append else parts, _now_ns())
            return () if append else had

        return self._change(path, put)

    def take_back(self, path: Path, parts: tuple[Part, ...], had: tuple[Part, ...]) -> bool:
        """After put(), which has returned what the file had: the name is without these parts again.
        False: it was so already."""

        def take(entries: Entries, name: str) -> bool:
            entry = entries.get(name)
            if not isinstance(entry, File) or not set(parts) <= set(entry.parts):
                return False
            # Others may have appended to it meanwhile.
            left = (*had, *(part for part in entry.parts if part not in parts))
            del entries[name]
            if left:
                entries[name] = File(left, _now_ns())
            return True

        try:
            return self._change(path, take)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def remove_file(self, path: Path) -> tuple[Part, ...]:
        """Returns what it had. Raises IsADirectoryError; else as find()."""

        def remove(entries: Entries, name: str) -> tuple[Part, ...]:
            entry = _named(entries, name, path)
            if isinstance(entry, Folder):
                raise _error(errno.EISDIR, path)
            del entries[name]
            return entry.parts

        return self._change(path, remove)

    def remove_folder(self, path: Path) -> None:
        """Raises OSError (ENOTEMPTY), NotADirectoryError; else as find()."""
        if not path:
            raise _error(errno.EBUSY, path)
        entry = self.find(path)
        self._folders.remove(self._folder(entry, path), "/".join(path))
        self._change(path, partial(exchange, known=entry, wanted=None))

    def move(self, old: Path, new: Path) -> tuple[Part, ...]:
        """Returns what a file had that was replaced. Between two folders there is a moment in which
        both names are there. Raises as find() and put(); OSError (EINVAL) for a folder that would
        be in itself, (ENOTEMPTY) for one that would replace another entry, (EBUSY) where another
        process changes the entry meanwhile: then it is as that one has left it."""
        entry = self.find(old)
        if isinstance(entry, Folder) and new[: len(old)] == old and new != old:
            raise _error(errno.EINVAL, new)
        if new == old:
            return ()
        if old[:-1] == new[:-1]:
            replaced = self._change(old, partial(_rename, new=new))
        else:
            replaced = self._change(new, partial(place, entry=entry, path="/".join(new)))
            # Another one that is there by now is not this one: it would be lost.
            if not self._change(old, partial(exchange, known=entry, wanted=None)):
                self._change(new, partial(exchange, known=entry, wanted=replaced))
                raise _error(errno.EBUSY, old)
        return () if replaced is None else replaced.parts

    def _folder(self, entry: Entry, path: Path) -> int:
        if isinstance(entry, File):
            raise _error(errno.ENOTDIR, path)
        return entry.number

    def _names(self, number: int, path: Path) -> Entries:
        return self._folders.names(number, "/".join(path))

    def _change(self, path: Path, edit: Callable[[Entries, str], T]) -> T:
        """edit: of the names in the folder that the path is in, and its own; it is called again
        where another process was faster."""
        if not path:
            raise _error(errno.EBUSY, path)
        folder, name = self.folder_of(path), path[-1]
        return self._folders.change(folder, lambda all: edit(all, name), "/".join(path[:-1]))


def _named(entries: Entries, name: str, path: Path) -> Entry:
    if name not in entries:
        raise _error(errno.ENOENT, path)
    return entries[name]


def _rename(entries: Entries, name: str, new: Path) -> File | None:
    entry = _named(entries, name, (*new[:-1], name))
    replaced = place(entries, new[-1], entry, "/".join(new))
    del entries[name]
    return replaced


def _error(number: int, path: Path) -> OSError:
    return error(number, "/".join(path))
