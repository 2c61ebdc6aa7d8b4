"""Names: what the mount asks of the job's Store. rdmacoll._fuse calls it, in threads of its own.

A place is (the number of a folder, a name of any bytes); an entry (is it a folder, its number, time
in ns, permissions, [(table, bytes), ...], of what nobody writes its first bytes and extended
attributes). All raise OSError.
Floor: rdmacoll/mount. Thread: any.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from itertools import count

from ..files.board import FileBoard
from ..files.entry import Entry, File, Folder, Part, TableFile
from ..files.folders import At, Entries, Folders, error, exchange
from ..files.holder import Hold, own_holder
from ..files.holds import Holds
from ..files.room import wait_for_room
from ..files.table_files import FOLDER as TABLES
from ..files.table_files import TableFiles
from ..ps.status import status_of
from ..ps.worker import Worker

Place = tuple[int, bytes]
About = tuple[bytes, list[tuple[bytes, bytes]]]
Packed = tuple[bool, int, int, int, list[tuple[int, int]], About | None]
TABLES_AT_ONCE = 16
SPACE_S = 1.0  # for which what is free is not asked for again
VERSIONS = 2  # that a server keeps of a table


class Names:
    def __init__(self, worker: Worker, board: FileBoard) -> None:
        self._worker = worker
        self._board = board
        self._folders = Folders(board, TableFiles(worker.client, board))
        self._holder = own_holder(worker)
        self._holds = Holds(board, self._folders, self._holder)
        self._numbers = count(1)
        self._held: dict[int, Hold] = {}
        self._space = (0, 0)
        self._space_s = -SPACE_S

    # --- names --------------------------------------------------------------------------------

    def find(self, at: Place) -> Packed | None:
        entry = self._folders.look(_at(at))
        return None if entry is None else _packed(entry)

    def names_in(self, folder: int) -> list[tuple[bytes, Packed]]:
        found = self._folders.names(folder)
        return [(os.fsencode(name), _packed(entry)) for name, entry in sorted(found.items())]

    def create(self, at: Place, mode: int, only_new: bool) -> Packed:
        name = _text(at)

        def create(entries: Entries) -> Entry:
            if name not in entries:
                entries[name] = File((), time.time_ns(), mode)
            elif only_new:
                raise error(errno.EEXIST, name)
            return entries[name]

        return _packed(self._folders.change(_at(at), create))

    def put(self, at: Place, packed: Packed, new_tables: list[int], hold: int) -> None:
        """new_tables: of these parts those that this process has made. hold: of the version before;
        it is of this one then. Raises OSError (ESTALE) where this process was taken for dead."""
        base = self._held[hold]
        self._keep(hold, self._holds.put(_at(at), _file(packed), new_tables, base))

    def append(self, at: Place, packed: Packed, new_tables: list[int], hold: int) -> Packed:
        """Behind what the file has by then; as put()."""
        after, held = self._holds.append(_at(at), _file(packed), new_tables)
        self._keep(hold, held)
        return _packed(after)

    def _keep(self, number: int, hold: Hold) -> None:
        self._held[number].close()
        self._held[number] = hold

    def change(self, at: Place, known: Packed, wanted: Packed) -> None:
        name, before, after = _text(at), _entry(known), _entry(wanted)
        if not self._folders.change(_at(at), lambda all: exchange(all, name, before, after)):
            raise error(errno.ESTALE, name)

    def changed_ns(self, folder: int) -> int:
        return self._folders.changed_ns(folder)

    def set_changed_ns(self, folder: int, changed_ns: int) -> None:
        self._folders.set_changed_ns(folder, changed_ns)

    def make_folder(self, at: Place, mode: int) -> Packed:
        return _packed(self._folders.make_folder(_at(at), mode))

    def remove_file(self, at: Place) -> None:
        self._board.throw_away(self._folders.remove_file(_at(at)).tables)

    def remove_folder(self, at: Place) -> None:
        self._folders.remove_folder(_at(at))

    def move(self, old: Place, new: Place, only_new: bool) -> None:
        if old != new:
            replaced = self._folders.move(_at(old), _at(new), only_new=only_new, over_empty=True)
            if replaced is not None:
                self._board.throw_away(replaced.tables)

    # --- versions -----------------------------------------------------------------------------

    def hold(self, at: Place, packed: Packed) -> int:
        """Raises OSError (ESTALE) where another version has the name."""
        if at[0] == TABLES.number:
            held = self._holder.hold(())
        else:
            held = self._holds.hold(_at(at), _file(packed))
        number = next(self._numbers)
        self._held[number] = held
        return number

    def release(self, hold: int) -> None:
        self._held.pop(hold).close()

    def new_tables(self) -> list[int]:
        """The last one is to be used first."""
        return self._holder.make(TABLES_AT_ONCE)[::-1]

    def free(self, tables: Iterable[int]) -> None:
        """As Holds.free()."""
        self._holds.free(tables)

    def wait_for_room(self) -> bool:
        """Whether it is worth to try again what has found none."""
        return wait_for_room(self._board)

    def space(self) -> tuple[int, int]:
        """Bytes that files may have in all, and how many of them are free."""
        now_s = time.monotonic()
        if now_s - self._space_s >= SPACE_S:
            job = status_of(self._worker.board)
            copies = VERSIONS * job.replicas
            limit = sum(one.memory_limit_bytes for one in job.servers)
            used = sum(one.memory_bytes for one in job.servers)
            self._space = limit // copies, max(limit - used, 0) // copies
            self._space_s = now_s
        return self._space


def _text(at: Place) -> str:
    return os.fsdecode(at[1])


def _at(at: Place) -> At:
    return At(at[0], _text(at), _text(at))


def _packed(entry: Entry) -> Packed:
    if isinstance(entry, Folder):
        about: About | None = (b"", []) if entry == TABLES else None
        return True, entry.number, entry.modified_ns, entry.mode, [], about
    parts = [(part.table, part.size) for part in entry.parts]
    return False, 0, entry.modified_ns, entry.mode, parts, _about(entry)


def _about(file: File) -> About | None:
    if not isinstance(file, TableFile):
        return None
    shape = ",".join(map(str, file.shape)).encode()
    return file.head, [(b"dtype", b"float32"), (b"shape", shape)]


def _entry(packed: Packed) -> Entry:
    is_folder, number, modified_ns, mode, _, _ = packed
    return Folder(number, modified_ns, mode) if is_folder else _file(packed)


def _file(packed: Packed) -> File:
    _, _, modified_ns, mode, parts, _ = packed
    return File(tuple(Part(table, size) for table, size in parts), modified_ns, mode)
