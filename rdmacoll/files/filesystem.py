"""RdmaFileSystem: fsspec's face, for paths rdma://...

Floor: rdmacoll/files. Thread: any; a file is open in one at a time.
"""

from __future__ import annotations

import errno
import os
from datetime import datetime, timezone
from typing import Any

from fsspec.spec import AbstractFileSystem

from ..ps.guest import as_address
from ..ps.worker import DEFAULT_TIMEOUT_S, worker
from .contents import Contents
from .entry import Entry, File, Folder
from .opened import Reader, Writer
from .shelf import Shelf
from .tree import Path, Tree, now_ns

NS = 1_000_000_000


class RdmaFileSystem(AbstractFileSystem):
    """Files at the servers of this process's job.

        with fsspec.open("rdma://runs/7/model.pt", "wb") as file:
            torch.save(model.state_dict(), file)

    A file that is written is seen as a whole, when it is closed; who reads it goes on with the
    version that was there when it was opened.
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
        shelf = Shelf(at.board)
        self._tree = Tree(shelf)
        self._contents = Contents(at, shelf, timeout)

    # --- names --------------------------------------------------------------------------------

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        entry = self._tree.find(_names(path))
        if isinstance(entry, File):
            found: dict[str, Entry] = {path: entry}
        else:
            below = f"{path}/" if path else ""
            found = {below + name: one for name, one in self._tree.list(_names(path)).items()}
        about = [_about(name, one) for name, one in sorted(found.items())]
        return about if detail else [one["name"] for one in about]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return _about(path, self._tree.find(_names(path)))

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        names = _names(self._strip_protocol(path))
        if create_parents and len(names) > 1:
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
        file = self._tree.remove_file(_names(self._strip_protocol(path)))
        self._contents.free(file.parts)

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
        """In one step, of folders as well. What had the new name before is replaced."""
        old, new = (_names(self._strip_protocol(path)) for path in (path1, path2))
        self._make_folders(new[:-1])
        replaced = self._tree.move(old, new)
        if replaced is not None:
            self._contents.free(replaced.parts)

    def created(self, path: str) -> datetime:
        return self.modified(path)

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
            return Reader(path, self._contents, self._file(names))
        if mode not in ("wb", "ab", "xb"):
            raise ValueError(f"mode={mode!r}; give rb, wb, ab or xb")
        if len(names) > 1:
            self._make_folders(names[:-1])
        before: File | None = None
        if self.exists(path):
            if mode == "xb":
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            before = self._file(names)
        begin = before.parts if before is not None and mode == "ab" else ()

        def put(file: File) -> None:
            replaced = self._tree.put(names, file, only_new=mode == "xb")
            if replaced is not None:
                kept = set(file.parts)
                self._contents.free(part for part in replaced.parts if part not in kept)

        return Writer(path, self._contents, begin, autocommit, put)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        file = self._file(_names(self._strip_protocol(path)))
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
        names = _names(self._strip_protocol(path))
        if truncate or not self.exists(path):
            self.open(path, "wb").close()
        else:
            self._tree.put(names, File(self._file(names).parts, now_ns()))

    def _file(self, names: Path) -> File:
        entry = self._tree.find(names)
        if isinstance(entry, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), "/".join(names))
        return entry

    def _make_folders(self, names: Path) -> bool:
        """All of these that are not there; whether the last one was not."""
        is_new = False
        for depth in range(1, len(names) + 1):
            try:
                self._tree.make_folder(names[:depth])
                is_new = True
            except FileExistsError:
                is_new = False
                self._tree.list(names[:depth])  # raises NotADirectoryError
        return is_new


def _names(path: str) -> Path:
    return tuple(name for name in path.split("/") if name)


def _about(path: str, entry: Entry) -> dict[str, Any]:
    is_file = isinstance(entry, File)
    return {
        "name": path,
        "size": entry.size if isinstance(entry, File) else 0,
        "type": "file" if is_file else "directory",
        "mtime": entry.modified_ns / NS,
    }
