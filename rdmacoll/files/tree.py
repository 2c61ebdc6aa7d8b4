"""Tree: which names there are. A folder is one word of the job's Store, changed as a whole: what a
process sees of it is of one moment, and of two that change it one sees the other's change.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ..ps.freeing.held import GONE
from .board import FileBoard
from .entry import Entry, File, Folder, Part, from_word, to_word

T = TypeVar("T")
ROOT = 0  # the number of the folder that is always there
# A path is its names: no slash is in them, and none is empty.
Path = tuple[str, ...]


def _now_ns() -> int:
    return time.time_ns()


class Tree:
    def __init__(self, board: FileBoard) -> None:
        self._board = board

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

        def make(entries: dict[str, Entry], name: str) -> None:
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

        def put(entries: dict[str, Entry], name: str) -> tuple[Part, ...]:
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

        def take(entries: dict[str, Entry], name: str) -> bool:
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

        def remove(entries: dict[str, Entry], name: str) -> tuple[Part, ...]:
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
        number = self._folder(entry, path)
        word = self._board.names_in(number)
        if word == GONE:
            raise _error(errno.ENOENT, path)
        # From then on nothing can be put there.
        is_empty = word is None or not from_word(word)
        if not is_empty or self._board.change_names(number, word, GONE) != GONE:
            raise _error(errno.ENOTEMPTY, path)
        self._change(path, partial(_exchange, known=entry, wanted=None))

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
            replaced = self._change(new, partial(_place, entry=entry, path=new))
            # Another one that is there by now is not this one: it would be lost.
            if not self._change(old, partial(_exchange, known=entry, wanted=None)):
                self._change(new, partial(_exchange, known=entry, wanted=replaced))
                raise _error(errno.EBUSY, old)
        return () if replaced is None else replaced.parts

    def _folder(self, entry: Entry, path: Path) -> int:
        if isinstance(entry, File):
            raise _error(errno.ENOTDIR, path)
        return entry.number

    def _names(self, number: int, path: Path) -> dict[str, Entry]:
        word = self._board.names_in(number)
        if word == GONE:
            raise _error(errno.ENOENT, path)
        return {} if word is None else from_word(word)

    def _change(self, path: Path, edit: Callable[[dict[str, Entry], str], T]) -> T:
        """edit: of the names in the folder that the path is in, and its own; it is called again
        where another process was faster."""
        if not path:
            raise _error(errno.EBUSY, path)
        number = self.folder_of(path)
        while True:
            word = self._board.names_in(number)
            if word == GONE:
                raise _error(errno.ENOENT, path[:-1])
            entries = {} if word is None else from_word(word)
            result = edit(entries, path[-1])
            wanted = to_word(entries)
            if self._board.change_names(number, word, wanted) == wanted:
                return result


def _named(entries: dict[str, Entry], name: str, path: Path) -> Entry:
    if name not in entries:
        raise _error(errno.ENOENT, path)
    return entries[name]


def _exchange(entries: dict[str, Entry], name: str, known: Entry, wanted: Entry | None) -> bool:
    """False: it is not as known any more."""
    if entries.get(name) != known:
        return False
    if wanted is None:
        del entries[name]
    else:
        entries[name] = wanted
    return True


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
