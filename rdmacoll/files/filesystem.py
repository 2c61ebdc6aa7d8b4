"""RdmaFileSystem: fsspec's face, for paths rdma://...

Floor: rdmacoll/files. Thread: any; a file is open in one at a time.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from fsspec.spec import AbstractFileSystem

from ..ps.guest import as_address
from ..ps.worker import DEFAULT_TIMEOUT_S, worker
from .board import FileBoard
from .contents import Contents
from .entry import Entry, File, Part
from .holder import own_holder
from .holds import Holds, as_file
from .opened import Reader, Writer
from .tree import Path, Tree

NS = 1_000_000_000


class RdmaFileSystem(AbstractFileSystem):
    """Files at the servers of this process's job.

        with fsspec.open("rdma://runs/7/model.pt", "wb") as file:
            torch.save(model.state_dict(), file)

    A file that is written is seen as a whole, when it is closed. Who has it open reads the version
    that was there when it was opened, also when it is replaced or removed.
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
        board = FileBoard(at)
        self._tree = Tree(board)
        self._holds = Holds(board, self._tree, own_holder(at))
        self._contents = Contents(at, board, timeout)

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
        return {"name": path, "size": size, "type": kind, "mtime": mtime}

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        names = _names(self._strip_protocol(path))
        if create_parents:
            self._make_folders(names[:-1])
        self._tree.make_folder(names)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        names = _names(self._strip_protocol(path))
        if self._make_folders(names) or exist_ok:
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    def rmdir(self, path: str) -> None:
        self._tree.remove_folder(_names(self._strip_protocol(path)))

    def rm_file(self, path: str) -> None:
        self._contents.free(self._tree.remove_file(_names(self._strip_protocol(path))))

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
        self._contents.free(self._tree.move(old, new))

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
    ) -> Reader | Writer:
        names = _names(path)
        if mode == "rb":
            return Reader(path, self._contents, *self._holds.open(names))
        if mode not in ("wb", "ab", "xb"):
            raise ValueError(f"mode={mode!r}; give rb, wb, ab or xb")
        size = self._size(names)
        if size is not None and mode == "xb":
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        begin = size or 0 if mode == "ab" else 0

        def put(parts: tuple[Part, ...]) -> None:
            only_new, append = mode == "xb", mode == "ab"
            self._contents.free(self._holds.put(names, parts, only_new=only_new, append=append))

        return Writer(path, self._contents, begin, autocommit, put)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        names = _names(self._strip_protocol(path))
        try:
            return self._read(self._file(names), start, end)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
        # It was replaced while it was read: so seldom that only now somebody is to keep it.
        file, hold = self._holds.open(names)
        try:
            return self._read(file, start, end)
        finally:
            hold.close()

    def _read(self, file: File, start: int | None, end: int | None) -> bytes:
        first, last, _step = slice(start, end).indices(file.size)
        out = bytearray(max(last - first, 0))
        self._contents.read(file.parts, first, memoryview(out))
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
        return as_file(self._tree.find(names), names)

    def _size(self, names: Path) -> int | None:
        """None: there is no such file, but there are the folders on the way, which may be new."""
        try:
            folder = self._tree.folder_of(names)
        except FileNotFoundError:
            self._make_folders(names[:-1])
            return None
        try:
            return as_file(self._tree.find_in(folder, names), names).size
        except FileNotFoundError:
            return None

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
