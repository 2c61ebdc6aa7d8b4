"""RdmaFileSystem: fsspec's face, for paths rdma://...

Floor: rdmacoll/files. Thread: any; a file is open in one at a time.
"""

from __future__ import annotations

import errno
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from fsspec.spec import AbstractFileSystem

from ..ps.guest import as_address
from ..ps.worker import DEFAULT_TIMEOUT_S, worker
from .board import FileBoard
from .draft import Draft, Drafts, Start
from .entry import Entry, File, TableFile
from .folders import At, Folders, error
from .holder import own_holder
from .holds import Holds, as_file
from .opened import Changer, Reader, Writer
from .reading import Reading
from .table_files import TableFiles
from .tree import Path, Tree

NS = 1_000_000_000


class RdmaFileSystem(AbstractFileSystem):
    """Files at the servers of this process's job.

        with fsspec.open("rdma://runs/7/model.pt", "wb") as file:
            torch.save(model.state_dict(), file)

    A file that is written is seen as a whole, when it is closed. Who has it open reads the version
    that was there when it was opened, also when it is replaced or removed. Its calls are fsspec's;
    docs/FILES.md says what holds for each.
    """

    protocol = "rdma"
    root_marker = ""

    def __init__(
        self,
        timeout: float = DEFAULT_TIMEOUT_S,
        store: str | None = None,
        rdzv_id: str | None = None,
        **options: Any,
    ) -> None:
        """timeout: of each wait for servers, in seconds. store, rdzv_id: of a process that is no
        rank of the job, as of ps.connect(), whose errors these are."""
        super().__init__(**options)
        at = worker(timeout, None, None if store is None else (as_address(store), rdzv_id))
        self._board = FileBoard(at)
        holder = own_holder(at)
        self._folders = Folders(self._board, TableFiles(at.client, self._board))
        self._tree = Tree(self._folders)
        self._holds = Holds(self._board, self._folders, holder)
        self._reading = Reading(at, timeout)
        self._drafts = Drafts(at, self._board, holder, self._holds, timeout)

    # --- names --------------------------------------------------------------------------------

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        entry = self._tree.find(_names(path))
        if isinstance(entry, File):
            found: dict[str, Entry] = {path: entry}
        else:
            below = f"{path}/" if path else ""
            found = {below + name: one for name, one in self._tree.list(_names(path)).items()}
        about = [self._about(name, one) for name, one in sorted(found.items())]
        return about if detail else [one["name"] for one in about]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return self._about(path, self._tree.find(_names(path)))

    def _about(self, path: str, entry: Entry) -> dict[str, Any]:
        size, kind = (entry.size, "file") if isinstance(entry, File) else (0, "directory")
        mtime = self._tree.modified_ns(entry) / NS
        about = {"name": path, "size": size, "type": kind, "mtime": mtime}
        if isinstance(entry, TableFile):
            about |= {"mtime": time.time(), "dtype": "float32", "shape": entry.shape}
        return about

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        names = _names(self._strip_protocol(path))
        if create_parents:
            self._make_folders(names[:-1])
        self._tree.make_folder(names)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        names = _names(self._strip_protocol(path))
        if self._make_folders(names) or exist_ok:
            return
        raise error(errno.EEXIST, path)

    def rmdir(self, path: str) -> None:
        self._tree.remove_folder(_names(self._strip_protocol(path)))

    def rm_file(self, path: str) -> None:
        removed = self._tree.remove_file(_names(self._strip_protocol(path)))
        self._board.throw_away(removed.tables)

    def rm(
        self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None
    ) -> None:
        found = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
        for one in reversed(found):  # what is in a folder comes behind it
            if recursive and self.isdir(one):
                self.rmdir(one)
            else:
                self.rm_file(one)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Of folders as well. A file that had the new name before is replaced."""
        old, new = (_names(self._strip_protocol(path)) for path in (path1, path2))
        self._make_folders(new[:-1])
        replaced = self._tree.move(old, new)
        if replaced is not None:
            self._board.throw_away(replaced.tables)

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=timezone.utc)

    # --- bytes --------------------------------------------------------------------------------

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **_: Any,
    ) -> Reader | Writer | Changer:
        names = _names(path)
        if mode == "rb":
            return Reader(path, self._reading, *self._holds.open(self._at(names)))
        if mode == "r+b":
            at = self._at(names)
            self._folders.check_writable(at)
            draft = Draft(self._drafts, at, Start(*self._holds.open(at)))
            changer = Changer(path, draft, autocommit)
            if not autocommit:  # fsspec has none of these in a transaction
                self.transaction.files.append(changer)
            return changer
        if mode not in ("wb", "ab", "xb"):
            raise ValueError(f"mode={mode!r}; give rb, r+b, wb, ab or xb")
        draft = Draft(self._drafts, *self._start(path, names, mode))
        return Writer(path, draft, autocommit, appends=mode == "ab")

    def _start(self, path: str, names: Path, mode: str) -> tuple[At, Start]:
        """Of a file that is written: one that there is, or another one. Folders on the way are
        made."""
        try:
            at = self._at(names)
        except FileNotFoundError:
            self._make_folders(names[:-1])
            at = self._at(names)
        self._folders.check_writable(at)
        if mode == "ab":
            with suppress(FileNotFoundError):
                return at, Start(*self._holds.open(at), appends=True)
            return at, Start(File((), 0), appends=True)
        entry = self._folders.look(at)
        if entry is None:
            return at, Start(File((), 0), only_new=mode == "xb")
        file = as_file(entry, path)
        if mode == "xb":
            raise error(errno.EEXIST, path)
        return at, Start(replace(file, parts=()))

    def _at(self, names: Path) -> At:
        """Raises IsADirectoryError for the root."""
        if not names:
            raise error(errno.EISDIR, "")
        return self._tree.at(names)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        names = _names(self._strip_protocol(path))
        try:
            return self._read(self._file(names), start, end)
        except OSError as lost:
            if lost.errno != errno.ESTALE:
                raise
        # It was replaced while it was read: so seldom that only now somebody is to keep it.
        file, hold = self._holds.open(self._at(names))
        try:
            return self._read(file, start, end)
        finally:
            hold.close()

    def _read(self, file: File, start: int | None, end: int | None) -> bytes:
        first, last, _step = slice(start, end).indices(file.size)
        out = bytearray(max(last - first, 0))
        self._reading.read(file, first, memoryview(out))
        return bytes(out)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        with self.open(path1, "rb") as source, self.open(path2, "wb") as copy:
            while data := source.read(self.blocksize):
                copy.write(data)

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Makes an empty file; truncate=False: of one that is there it changes the time alone."""
        self.open(path, "wb" if truncate else "ab").close()

    def _file(self, names: Path) -> File:
        return as_file(self._tree.find(names), "/".join(names))

    def _make_folders(self, names: Path) -> bool:
        """All of these that are not there; whether the last one was not."""
        with suppress(FileNotFoundError):
            self._tree.list(names)  # raises NotADirectoryError
            return False
        for depth in range(1, len(names) + 1):
            is_new = False
            with suppress(FileExistsError):
                self._tree.make_folder(names[:depth])
                is_new = True
        return is_new


def _names(path: str) -> Path:
    return tuple(name for name in path.split("/") if name)
