"""Folders: the names in each, by the folder's number. A folder is one word of the job's Store,
changed as a whole: what a process sees of it is of one moment, and of two that change it one sees
the other's change.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..ps.freeing.held import GONE
from .board import FileBoard
from .entry import FOLDER_MODE, Entry, File, Folder, from_word, to_word

T = TypeVar("T")
Entries = dict[str, Entry]


def error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


@dataclass(frozen=True)
class At:
    """A name in a folder."""

    folder: int  # its number
    name: str
    path: str  # as people call it, for errors


class Folders:
    def __init__(self, board: FileBoard) -> None:
        self._board = board

    def names(self, number: int, path: str = "") -> Entries:
        """path: of the folder, for errors. Raises FileNotFoundError where it was removed."""
        _, entries, _ = self._read(number, path)
        return entries

    def changed_ns(self, number: int) -> int:
        """When a name in it has come or gone last, or what was set in its place; 0: neither was."""
        word = self._board.names_in(number)
        return 0 if word in (None, GONE) else from_word(word)[1]

    def set_changed_ns(self, number: int, changed_ns: int, path: str = "") -> None:
        """path, errors: as names()."""
        while True:
            word, entries, _ = self._read(number, path)
            if self._write(number, word, entries, changed_ns):
                return

    def change(
        self, number: int, edit: Callable[[Entries], T], path: str = "", *, is_move: bool = False
    ) -> T:
        """edit: it is called again where another process was faster. is_move: the folder has
        changed also where its names are the same. path, errors: as names()."""
        while True:
            word, entries, changed_ns = self._read(number, path)
            names = set(entries)
            result = edit(entries)
            if is_move or entries.keys() != names:
                changed_ns = time.time_ns()
            if self._write(number, word, entries, changed_ns):
                return result

    def _read(self, number: int, path: str) -> tuple[str | None, Entries, int]:
        word = self._board.names_in(number)
        if word == GONE:
            raise error(errno.ENOENT, path)
        return (word, {}, 0) if word is None else (word, *from_word(word))

    def _write(self, number: int, known: str | None, entries: Entries, changed_ns: int) -> bool:
        """False: another process was faster."""
        wanted = to_word(entries, changed_ns)
        return self._board.change_names(number, known, wanted) == wanted

    def find(self, at: At) -> Entry:
        """Raises FileNotFoundError."""
        return named(self.names(at.folder, at.path), at)

    def make_folder(self, at: At, mode: int = FOLDER_MODE) -> Folder:
        """Raises FileExistsError; else as names(), as all below."""
        made: list[Folder] = []

        def make(entries: Entries) -> Folder:
            if at.name in entries:
                raise error(errno.EEXIST, at.path)
            if not made:  # a number is drawn only for a name that is free, and once
                made.append(Folder(self._board.next_folder(), time.time_ns(), mode))
            entries[at.name] = made[0]
            return made[0]

        return self.change(at.folder, make, at.path)

    def remove_file(self, at: At) -> File:
        """Raises FileNotFoundError, IsADirectoryError."""

        def remove(entries: Entries) -> File:
            entry = named(entries, at)
            if isinstance(entry, Folder):
                raise error(errno.EISDIR, at.path)
            del entries[at.name]
            return entry

        return self.change(at.folder, remove, at.path)

    def remove_folder(self, at: At) -> None:
        """Raises FileNotFoundError, NotADirectoryError, OSError (ENOTEMPTY)."""
        entry = self.find(at)
        if isinstance(entry, File):
            raise error(errno.ENOTDIR, at.path)
        self._close(entry, at.path)
        self.change(at.folder, lambda all: exchange(all, at.name, entry, None), at.path)

    def move(
        self, old: At, new: At, *, only_new: bool = False, over_empty: bool = False
    ) -> File | None:
        """Returns the file that was replaced. Between two folders there is a moment in which both
        names are there. over_empty: a folder may replace one that is empty. Raises as find() and
        place(); FileExistsError; OSError (EBUSY) where another process changes the entry meanwhile:
        then it is as that one has left it."""
        entry = self.find(old)
        if over_empty and isinstance(entry, Folder) and not only_new:
            self._remove_empty(new)

        def put(entries: Entries) -> File | None:
            if only_new and new.name in entries:
                raise error(errno.EEXIST, new.path)
            moved = named(entries, old) if old.folder == new.folder else entry
            replaced = place(entries, new.name, moved, new.path)
            if old.folder == new.folder:
                del entries[old.name]
            return replaced

        replaced = self.change(new.folder, put, new.path, is_move=True)
        if old.folder == new.folder or self._take(old, entry, None):
            return replaced
        # Another entry that has the old name by now is not this one: it would be lost.
        self._take(new, entry, replaced)
        raise error(errno.EBUSY, old.path)

    def _remove_empty(self, at: At) -> None:
        if isinstance(self.names(at.folder, at.path).get(at.name), Folder):
            self.remove_folder(at)

    def _take(self, at: At, known: Entry, wanted: Entry | None) -> bool:
        return self.change(at.folder, lambda all: exchange(all, at.name, known, wanted), at.path)

    def _close(self, folder: Folder, path: str) -> None:
        """From then on nothing can be put there. Raises OSError (ENOTEMPTY)."""
        while True:
            word, entries, _ = self._read(folder.number, path)
            if entries:
                raise error(errno.ENOTEMPTY, path)
            if self._board.change_names(folder.number, word, GONE) == GONE:
                return


def named(entries: Entries, at: At) -> Entry:
    """Raises FileNotFoundError."""
    if at.name not in entries:
        raise error(errno.ENOENT, at.path)
    return entries[at.name]


def exchange(entries: Entries, name: str, known: Entry, wanted: Entry | None) -> bool:
    """False: it is not as known any more."""
    if entries.get(name) != known:
        return False
    if wanted is None:
        del entries[name]
    else:
        entries[name] = wanted
    return True


def place(entries: Entries, name: str, entry: Entry, path: str) -> File | None:
    """Returns the file that is replaced."""
    before = entries.get(name)
    if isinstance(before, Folder):
        raise error(errno.EISDIR if isinstance(entry, File) else errno.ENOTEMPTY, path)
    if before is not None and isinstance(entry, Folder):
        raise error(errno.ENOTDIR, path)
    entries[name] = entry
    return before
