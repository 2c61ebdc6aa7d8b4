"""Names: what the mount asks of the job's Store. rdmacoll._fuse calls it, in threads of its own.

A place is (the number of a folder, a name of any bytes); an entry (is it a folder, its number, time
in ns, permissions, [(table, bytes), ...]). All raise OSError.
Floor: rdmacoll/mount. Thread: any.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count

from ..files.board import FileBoard
from ..files.entry import Entry, File, Folder, Part
from ..files.folders import At, Entries, Folders, error, exchange, place
from ..files.holder import Hold, own_holder
from ..files.room import wait_for_room
from ..ps.status import status_of
from ..ps.worker import Worker

Place = tuple[int, bytes]
Packed = tuple[bool, int, int, int, list[tuple[int, int]]]
TABLES_AT_ONCE = 16
SPACE_S = 1.0  # for which what is free is not asked for again
VERSIONS = 2  # that a server keeps of a table


class Names:
    def __init__(self, worker: Worker, board: FileBoard) -> None:
        self._worker = worker
        self._board = board
        self._folders = Folders(board)
        self._holder = own_holder(worker)
        self._numbers = count(1)
        self._held: dict[int, Hold] = {}
        self._space = (0, 0)
        self._space_s = -SPACE_S

    # --- names --------------------------------------------------------------------------------

    def find(self, at: Place) -> Packed | None:
        entry = self._folders.names(at[0]).get(_text(at))
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

        return _packed(self._folders.change(at[0], create))

    def put(self, at: Place, packed: Packed, new_tables: list[int], hold: int) -> None:
        """new_tables: of these parts those that this process has made. Raises OSError (ESTALE)
        where it was taken for dead since."""
        name, wanted = _text(at), _file(packed)

        def put(entries: Entries) -> tuple[Entry | None, File]:
            return place(entries, name, wanted, name), wanted

        self._name(at, put, new_tables, hold)

    def append(self, at: Place, packed: Packed, new_tables: list[int], hold: int) -> Packed:
        """Behind what the file has by then; as put()."""
        name, added = _text(at), _file(packed)

        def append(entries: Entries) -> tuple[Entry | None, File]:
            before = entries.get(name)
            if isinstance(before, Folder):
                raise error(errno.EISDIR, name)
            had = () if before is None else before.parts
            after = replace(added, parts=(*had, *added.parts))
            entries[name] = after
            return before, after

        return _packed(self._name(at, append, new_tables, hold))

    def _name(
        self,
        at: Place,
        edit: Callable[[Entries], tuple[Entry | None, File]],
        new_tables: list[int],
        hold: int,
    ) -> File:
        """edit: returns what had the name, and what has it then."""
        if new_tables:
            self._holder.check(new_tables)
        before, after = self._folders.change(at[0], edit)
        # A version that another process puts in its place is not seen: who writes it goes on.
        held = self._holder.hold(after.tables)
        try:
            if new_tables:
                self._holder.named(new_tables)
        except OSError:
            held.close()
            name = _text(at)
            if not self._folders.change(at[0], lambda all: exchange(all, name, after, before)):
                self._free_parts(before, None)
            raise
        self._held[hold].close()
        self._held[hold] = held
        self._free_parts(before, after)
        return after

    def change(self, at: Place, known: Packed, wanted: Packed) -> None:
        name, before, after = _text(at), _entry(known), _entry(wanted)
        if not self._folders.change(at[0], lambda all: exchange(all, name, before, after)):
            raise error(errno.ESTALE, name)

    def changed_ns(self, folder: int) -> int:
        return self._folders.changed_ns(folder)

    def set_changed_ns(self, folder: int, changed_ns: int) -> None:
        self._folders.set_changed_ns(folder, changed_ns)

    def make_folder(self, at: Place, mode: int) -> Packed:
        return _packed(self._folders.make_folder(_at(at), mode))

    def remove_file(self, at: Place) -> None:
        self._free_parts(self._folders.remove_file(_at(at)), None)

    def remove_folder(self, at: Place) -> None:
        self._folders.remove_folder(_at(at))

    def move(self, old: Place, new: Place, only_new: bool) -> None:
        if old != new:
            moved = self._folders.move(_at(old), _at(new), only_new=only_new, over_empty=True)
            self._free_parts(moved, None)

    # --- versions -----------------------------------------------------------------------------

    def hold(self, at: Place, packed: Packed) -> int:
        """Raises OSError (ESTALE) where another version has the name."""
        wanted = _entry(packed)
        assert isinstance(wanted, File)
        held = self._holder.hold(wanted.tables)
        # Only what has its name still is kept: what has lost it may be freed by now.
        if self._folders.names(at[0]).get(_text(at)) != wanted:
            held.close()
            raise error(errno.ESTALE, _text(at))
        number = next(self._numbers)
        self._held[number] = held
        return number

    def release(self, hold: int) -> None:
        self._held.pop(hold).close()

    def new_tables(self) -> list[int]:
        """The last one is to be used first."""
        return self._holder.make(TABLES_AT_ONCE)[::-1]

    def free(self, tables: Iterable[int]) -> None:
        """No folder names them."""
        numbers = list(tables)
        self._board.throw_away(numbers)
        self._holder.forget(numbers)

    def _free_parts(self, before: Entry | None, after: File | None) -> None:
        if isinstance(before, File):
            kept = set() if after is None else set(after.tables)
            self._board.throw_away(sorted(set(before.tables) - kept))

    def wait_for_room(self) -> bool:
        """Whether it is worth to try again what has found none."""
        return wait_for_room(self._worker)

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
        return True, entry.number, entry.modified_ns, entry.mode, []
    parts = [(part.table, part.size) for part in entry.parts]
    return False, 0, entry.modified_ns, entry.mode, parts


def _entry(packed: Packed) -> Entry:
    is_folder, number, modified_ns, mode, _ = packed
    return Folder(number, modified_ns, mode) if is_folder else _file(packed)


def _file(packed: Packed) -> File:
    _, _, modified_ns, mode, parts = packed
    return File(tuple(Part(table, size) for table, size in parts), modified_ns, mode)
