"""Tree: which names there are. A directory is one word of the job's Store, changed as a whole: what
a process sees of it is of one moment, and of two that change it one sees the other's change.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from typing import TypeVar

from .entry import Entry, File, Folder, from_word, to_word
from .shelf import GONE, Shelf

T = TypeVar("T")
ROOT = 0  # the number of the directory that is always there
# A path is its names: no slash is in them, and none is empty.
Path = tuple[str, ...]


def now_ns() -> int:
    return time.time_ns()


class Tree:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def find(self, path: Path) -> Entry:
        """Raises FileNotFoundError, NotADirectoryError."""
        entry: Entry = Folder(ROOT, 0)
        for depth, name in enumerate(path):
            entries = self._names(self._folder(entry, path[:depth]), path[:depth])
            if name not in entries:
                raise _error(errno.ENOENT, path)
            entry = entries[name]
        return entry

    def list(self, path: Path) -> dict[str, Entry]:
        """Raises FileNotFoundError, NotADirectoryError."""
        return self._names(self._folder(self.find(path), path), path)

    def make_folder(self, path: Path) -> None:
        """Raises FileExistsError; else as find() of the folder that it is in."""

        def make(entries: dict[str, Entry], name: str) -> None:
            if name in entries:
                raise _error(errno.EEXIST, path)
            entries[name] = Folder(self._shelf.next_folder(), now_ns())

        self._change(path, make)

    def put(self, path: Path, file: File, *, only_new: bool = False) -> File | None:
        """Gives the file this name; what had it before. Raises IsADirectoryError, FileExistsError;
        else as find() of the folder that it is in."""

        def put(entries: dict[str, Entry], name: str) -> File | None:
            before = entries.get(name)
            if isinstance(before, Folder):
                raise _error(errno.EISDIR, path)
            if before is not None and only_new:
                raise _error(errno.EEXIST, path)
            entries[name] = file
            return before

        return self._change(path, put)

    def remove_file(self, path: Path) -> File:
        """Raises IsADirectoryError; else as find()."""

        def remove(entries: dict[str, Entry], name: str) -> File:
            entry = _named(entries, name, path)
            if isinstance(entry, Folder):
                raise _error(errno.EISDIR, path)
            del entries[name]
            return entry

        return self._change(path, remove)

    def remove_folder(self, path: Path) -> None:
        """Raises OSError (ENOTEMPTY), NotADirectoryError; else as find()."""
        if not path:
            raise _error(errno.EBUSY, path)
        number = self._folder(self.find(path), path)
        word = self._shelf.names_in(number)
        # From then on nothing can be put there; whoever comes between sees an empty folder go.
        if word == GONE or (word is not None and from_word(word)):
            raise _error(errno.ENOENT if word == GONE else errno.ENOTEMPTY, path)
        if self._shelf.change_names(number, word, GONE) != GONE:
            raise _error(errno.ENOTEMPTY, path)
        self._change(path, lambda entries, name: entries.pop(name, None))

    def move(self, old: Path, new: Path) -> File | None:
        """Returns what had the new name before, and was replaced. Between two folders there is a
        moment in which both names are there. Raises as find() and put(); OSError (EINVAL) for a
        folder that would be in itself, (ENOTEMPTY) for one that would replace another entry."""
        entry = self.find(old)
        if isinstance(entry, Folder) and new[: len(old)] == old and new != old:
            raise _error(errno.EINVAL, new)
        if new == old:
            return None
        if old[:-1] == new[:-1]:
            return self._change(old, lambda entries, name: _rename(entries, name, new))

        def put(entries: dict[str, Entry], name: str) -> File | None:
            return _place(entries, name, entry, new)

        replaced = self._change(new, put)
        self._change(old, lambda entries, name: entries.pop(name, None))
        return replaced

    def _folder(self, entry: Entry, path: Path) -> int:
        if isinstance(entry, File):
            raise _error(errno.ENOTDIR, path)
        return entry.number

    def _names(self, number: int, path: Path) -> dict[str, Entry]:
        word = self._shelf.names_in(number)
        if word == GONE:
            raise _error(errno.ENOENT, path)
        return {} if word is None else from_word(word)

    def _change(self, path: Path, edit: Callable[[dict[str, Entry], str], T]) -> T:
        """edit: of the names in the folder that the path is in, and its own; it is called again
        where another process was faster."""
        if not path:
            raise _error(errno.EBUSY, path)
        number = self._folder(self.find(path[:-1]), path[:-1])
        while True:
            word = self._shelf.names_in(number)
            if word == GONE:
                raise _error(errno.ENOENT, path[:-1])
            entries = {} if word is None else from_word(word)
            result = edit(entries, path[-1])
            wanted = to_word(entries)
            if self._shelf.change_names(number, word, wanted) == wanted:
                return result


def _named(entries: dict[str, Entry], name: str, path: Path) -> Entry:
    if name not in entries:
        raise _error(errno.ENOENT, path)
    return entries[name]


def _rename(entries: dict[str, Entry], name: str, new: Path) -> File | None:
    entry = _named(entries, name, (*new[:-1], name))
    replaced = _place(entries, new[-1], entry, new)
    del entries[name]
    return replaced


def _place(entries: dict[str, Entry], name: str, entry: Entry, path: Path) -> File | None:
    before = entries.get(name)
    if isinstance(before, Folder):
        raise _error(errno.EISDIR if isinstance(entry, File) else errno.ENOTEMPTY, path)
    if before is not None and isinstance(entry, Folder):
        raise _error(errno.ENOTDIR, path)
    entries[name] = entry
    return before


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), "/".join(path))
