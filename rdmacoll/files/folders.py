"""Folders: the names in each, by the folder's number. A folder is one word of the job's Store,
changed as a whole: what a process sees of it is of one moment, and of two that change it one sees
the other's change.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TypeVar

from ..ps.freeing.held import GONE
from .board import FileBoard
from .entry import Entry, File, Folder, from_word, to_word

T = TypeVar("T")
Entries = dict[str, Entry]


def error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


class Folders:
    def __init__(self, board: FileBoard) -> None:
        self._board = board

    def names(self, number: int, path: str = "") -> Entries:
        """path: of the folder, for errors. Raises FileNotFoundError where it was removed."""
        word = self._board.names_in(number)
        if word == GONE:
            raise error(errno.ENOENT, path)
        return {} if word is None else from_word(word)

    def change(self, number: int, edit: Callable[[Entries], T], path: str = "") -> T:
        """edit: it is called again where another process was faster. path, errors: as names()."""
        while True:
            word = self._board.names_in(number)
            if word == GONE:
                raise error(errno.ENOENT, path)
            entries = {} if word is None else from_word(word)
            result = edit(entries)
            wanted = to_word(entries)
            if self._board.change_names(number, word, wanted) == wanted:
                return result

    def remove(self, number: int, path: str = "") -> None:
        """From then on nothing can be put there. Raises OSError (ENOTEMPTY)."""
        word = self._board.names_in(number)
        if word == GONE:
            raise error(errno.ENOENT, path)
        is_empty = word is None or not from_word(word)
        if not is_empty or self._board.change_names(number, word, GONE) != GONE:
            raise error(errno.ENOTEMPTY, path)


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
