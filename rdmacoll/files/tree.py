"""Tree: which names there are, by paths.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno

from .entry import Entry, File, Folder
from .folders import ROOT, At, Folders, error

# A path is its names: no slash is in them, and none is empty.
Path = tuple[str, ...]


class Tree:
    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def find(self, path: Path) -> Entry:
        """Raises FileNotFoundError, NotADirectoryError."""
        entry: Entry = Folder(ROOT, 0)
        for depth, name in enumerate(path):
            folder = self._folder(entry, path[:depth])
            entry = self._folders.find(At(folder, name, "/".join(path)))
        return entry

    def folder_of(self, path: Path) -> int:
        """The number of the folder that it is in. Raises as find() of that folder."""
        return self._folder(self.find(path[:-1]), path[:-1])

    def at(self, path: Path) -> At:
        """Raises as find() of the folder that it is in; OSError (EBUSY) for the root."""
        if not path:
            raise _error(errno.EBUSY, path)
        return At(self.folder_of(path), path[-1], "/".join(path))

    def list(self, path: Path) -> dict[str, Entry]:
        """Raises FileNotFoundError, NotADirectoryError."""
        return self._folders.names(self._folder(self.find(path), path), "/".join(path))

    def modified_ns(self, entry: Entry) -> int:
        """When it was written, or a name in it has come or gone."""
        changed_ns = self._folders.changed_ns(entry.number) if isinstance(entry, Folder) else 0
        return changed_ns or entry.modified_ns

    def make_folder(self, path: Path) -> None:
        """Raises FileExistsError; else as find() of the folder that it is in."""
        self._folders.make_folder(self.at(path))

    def remove_file(self, path: Path) -> File:
        """Raises IsADirectoryError; else as find()."""
        return self._folders.remove_file(self.at(path))

    def remove_folder(self, path: Path) -> None:
        """Raises OSError (ENOTEMPTY), NotADirectoryError; else as find()."""
        self._folders.remove_folder(self.at(path))

    def move(self, old: Path, new: Path) -> File | None:
        """Returns the file that was replaced. Raises as Folders.move(), and OSError (EINVAL) for a
        folder that would be in itself."""
        entry = self.find(old)
        if new == old:
            return None
        if isinstance(entry, Folder) and new[: len(old)] == old:
            raise _error(errno.EINVAL, new)
        return self._folders.move(self.at(old), self.at(new))

    def _folder(self, entry: Entry, path: Path) -> int:
        if isinstance(entry, File):
            raise _error(errno.ENOTDIR, path)
        return entry.number


def _error(number: int, path: Path) -> OSError:
    return error(number, "/".join(path))
