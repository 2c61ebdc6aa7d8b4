"""Folders: the names in each, by the folder's number. A folder is one word of the job's Store,
changed as a whole: what a process sees of it is of one moment, and of two that change it one sees
the other's change. One folder is of another kind: the job's tables (table_files.py).

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from ..ps.freeing.held import GONE
from .board import FileBoard
from .entry import FOLDER_MODE, Entry, File, Folder, from_word, to_word
from .table_files import FOLDER as TABLES
from .table_files import NAME as TABLES_NAME
from .table_files import TableFiles

ROOT = 0  # the number of the folder that is always there
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


class ReplacedMeanwhile(Exception):
    """By another process."""


class Folders:
    def __init__(self, board: FileBoard, tables: TableFiles | None = None) -> None:
        """tables: None: there is no folder of them."""
        self._board = board
        self._tables = tables

    def names(self, number: int, path: str = "") -> Entries:
        """path: of the folder, for errors. Raises FileNotFoundError where it was removed."""
        if self._tables is not None and number == TABLES.number:
            return self._tables.all()
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

    def change(self, at: At, edit: Callable[[Entries], T], *, is_move: bool = False) -> T:
        """edit: of the names in the folder; it is called again where another process was faster.
        is_move: the folder has changed also where its names are the same. Raises OSError (EROFS)
        for what nobody writes; else as names()."""
        self.check_writable(at)
        while True:
            word, entries, changed_ns = self._read(at.folder, at.path)
            names = set(entries)
            result = edit(entries)
            if is_move or entries.keys() != names:
                changed_ns = time.time_ns()
            if self._write(at.folder, word, entries, changed_ns):
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

    def check_writable(self, at: At) -> None:
        """Raises OSError (EROFS) for tables, and their folder."""
        if self._tables is not None and (at.folder == TABLES.number or _is_tables(at)):
            raise error(errno.EROFS, at.path)

    def look(self, at: At) -> Entry | None:
        """None: there is no such name. Raises as names()."""
        if self._tables is not None:
            if at.folder == TABLES.number:
                return self._tables.find(at.name)
            if _is_tables(at):
                return TABLES
        return self.names(at.folder, at.path).get(at.name)

    def find(self, at: At) -> Entry:
        """Raises FileNotFoundError; else as names()."""
        entry = self.look(at)
        if entry is None:
            raise error(errno.ENOENT, at.path)
        return entry

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

        return self.change(at, make)

    def put(
        self, at: At, file: File, *, only_new: bool = False, kept: Set[int] = frozenset()
    ) -> File | None:
        """Gives it the name; returns the file that is replaced. kept: tables that the name has, or
        else it raises ReplacedMeanwhile. Raises IsADirectoryError, FileExistsError."""

        def put(entries: Entries) -> File | None:
            before = entries.get(at.name)
            if isinstance(before, File) and only_new:
                raise error(errno.EEXIST, at.path)
            if kept and not (isinstance(before, File) and kept <= set(before.tables)):
                raise ReplacedMeanwhile
            return place(entries, at.name, file, at.path)

        return self.change(at, put)

    def append(self, at: At, added: File) -> tuple[File | None, File]:
        """Puts its parts behind those that the name has. Returns the file before, and after. Raises
        IsADirectoryError."""

        def append(entries: Entries) -> tuple[File | None, File]:
            before = entries.get(at.name)
            if isinstance(before, Folder):
                raise error(errno.EISDIR, at.path)
            had = () if before is None else before.parts
            after = replace(added, parts=(*had, *added.parts))
            entries[at.name] = after
            return before, after

        return self.change(at, append)

    def take_back(self, at: At, before: File | None, after: File) -> bool:
        """What put() or append() has done. Others may have appended to it meanwhile: that stays.
        False: another version has the name."""

        def take(entries: Entries) -> bool:
            entry = entries.get(at.name)
            count = len(after.parts)
            if not isinstance(entry, File) or entry.parts[:count] != after.parts:
                return False
            others = entry.parts[count:]
            if before is not None:
                entries[at.name] = replace(before, parts=(*before.parts, *others))
            elif others:
                entries[at.name] = replace(entry, parts=others)
            else:
                del entries[at.name]
            return True

        try:
            return self.change(at, take)
        except FileNotFoundError:
            return False

    def remove_file(self, at: At) -> File:
        """Raises FileNotFoundError, IsADirectoryError."""

        def remove(entries: Entries) -> File:
            entry = named(entries, at)
            if isinstance(entry, Folder):
                raise error(errno.EISDIR, at.path)
            del entries[at.name]
            return entry

        return self.change(at, remove)

    def remove_folder(self, at: At) -> None:
        """Raises FileNotFoundError, NotADirectoryError, OSError (ENOTEMPTY)."""
        entry = self.find(at)
        if isinstance(entry, File):
            raise error(errno.ENOTDIR, at.path)
        self.check_writable(at)
        self._close(entry, at.path)
        self.change(at, lambda all: exchange(all, at.name, entry, None))

    def move(
        self, old: At, new: At, *, only_new: bool = False, over_empty: bool = False
    ) -> File | None:
        """Returns the file that was replaced. Between two folders there is a moment in which both
        names are there. over_empty: a folder may replace one that is empty. Raises as find() and
        place(); FileExistsError; OSError (EBUSY) where another process changes the entry meanwhile:
        then it is as that one has left it."""
        self.check_writable(old)
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

        replaced = self.change(new, put, is_move=True)
        if old.folder == new.folder or self._take(old, entry, None):
            return replaced
        # Another entry that has the old name by now is not this one: it would be lost.
        self._take(new, entry, replaced)
        raise error(errno.EBUSY, old.path)

    def _remove_empty(self, at: At) -> None:
        if isinstance(self.names(at.folder, at.path).get(at.name), Folder):
            self.remove_folder(at)

    def _take(self, at: At, known: Entry, wanted: Entry | None) -> bool:
        return self.change(at, lambda all: exchange(all, at.name, known, wanted))

    def _close(self, folder: Folder, path: str) -> None:
        """From then on nothing can be put there. Raises OSError (ENOTEMPTY)."""
        while True:
            word, entries, _ = self._read(folder.number, path)
            if entries:
                raise error(errno.ENOTEMPTY, path)
            if self._board.change_names(folder.number, word, GONE) == GONE:
                return


def _is_tables(at: At) -> bool:
    return at.folder == ROOT and at.name == TABLES_NAME


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
