"""Tree: which names there are, by paths.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

from .board import FileBoard
from .entry import Entry, File, Folder, Part
from .folders import At, Entries, Folders, error

T = TypeVar("T")
ROOT = 0  # the number of the folder that is always there
# A path is its names: no slash is in them, and none is empty.
Path = tuple[str, ...]


def _now_ns() -> int:
    return time.time_ns()


class Tree:
    def __init__(self, board: FileBoard) -> None:
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
        return self._folders.find(At(folder, path[-1], "/".join(path)))

    def list(self, path: Path) -> dict[str, Entry]:
        """Raises FileNotFoundError, NotADirectoryError."""
        return self._names(self._folder(self.find(path), path), path)

    def modified_ns(self, entry: Entry) -> int:
        """When it was written, or a name in it has come or gone."""
        changed_ns = self._folders.changed_ns(entry.number) if isinstance(entry, Folder) else 0
        return changed_ns or entry.modified_ns

    def make_folder(self, path: Path) -> None:
        """Raises FileExistsError; else as find() of the folder that it is in."""
        self._folders.make_folder(self._at(path))

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
        return self._folders.remove_file(self._at(path)).parts

    def remove_folder(self, path: Path) -> None:
        """Raises OSError (ENOTEMPTY), NotADirectoryError; else as find()."""
        self._folders.remove_folder(self._at(path))

    def move(self, old: Path, new: Path) -> tuple[Part, ...]:
        """Returns what a file had that was replaced. Raises as Folders.move(), and OSError (EINVAL)
        for a folder that would be in itself."""
        entry = self.find(old)
        if new == old:
            return ()
        if isinstance(entry, Folder) and new[: len(old)] == old:
            raise _error(errno.EINVAL, new)
        replaced = self._folders.move(self._at(old), self._at(new))
        return () if replaced is None else replaced.parts

    def _folder(self, entry: Entry, path: Path) -> int:
        if isinstance(entry, File):
            raise _error(errno.ENOTDIR, path)
        return entry.number

    def _names(self, number: int, path: Path) -> Entries:
        return self._folders.names(number, "/".join(path))

    def _change(self, path: Path, edit: Callable[[Entries, str], T]) -> T:
        """edit: as of Folders.change(), with the path's own name."""
        at = self._at(path)
        return self._folders.change(at.folder, lambda all: edit(all, at.name), at.path)

    def _at(self, path: Path) -> At:
        if not path:
            raise _error(errno.EBUSY, path)
        return At(self.folder_of(path), path[-1], "/".join(path))


def _error(number: int, path: Path) -> OSError:
    return error(number, "/".join(path))
