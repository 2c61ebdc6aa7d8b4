"""Draft: a version of a file that is being written, and the name that it is to have. Others see it
once it is committed. Its bytes are the engine's (csrc/files/draft.h).

Floor: rdmacoll/files. Thread: one at a time.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from .._extension import extension
from ..ps.worker import Worker
from .board import FileBoard
from .entry import File, Part
from .folders import At
from .holder import Hold, Holder
from .holds import Holds
from .room import wait_for_room

T = TypeVar("T")


class Drafts:
    """What all of this process share."""

    def __init__(
        self, worker: Worker, board: FileBoard, holder: Holder, holds: Holds, timeout: float
    ) -> None:
        """timeout: of each wait for servers, in seconds."""
        self.worker = worker
        self.board = board
        self.holder = holder
        self.holds = holds
        self.engine = extension().FileDrafts(worker.client, timeout)

    def new_table(self) -> int:
        (table,) = self.holder.make()
        return table


@dataclass(frozen=True)
class Start:
    """What a draft begins with."""

    file: File
    hold: Hold | None = None  # None: it has no bytes
    only_new: bool = False  # nobody else is to have made it
    appends: bool = False  # what is written is put behind what the file has when it is committed


class Draft:
    """Raises in all that it does OSError where servers have no room, or where this process stood
    still and was taken for dead (ESTALE); TimeoutError, remote.PeerError."""

    def __init__(self, shared: Drafts, at: At, start: Start) -> None:
        self._shared = shared
        self._at = at
        self._start = start
        parts = [(part.table, part.size) for part in start.file.parts]
        self._bytes = extension().FileDraft(shared.engine, parts, shared.new_table)

    @property
    def size(self) -> int:
        return self._bytes.size()

    def read(self, first: int, out: memoryview) -> int:
        """How many bytes there were."""
        return self._do(lambda: self._bytes.read(first, out))

    def write(self, first: int, data: memoryview) -> None:
        """What is between the end and `first` is zeros."""
        self._do(lambda: self._bytes.write(first, data))

    def resize(self, size: int) -> None:
        self._do(lambda: self._bytes.resize(size))

    def commit(self) -> None:
        """Servers have all, and the name has it. An error leaves the name as it was; after EIO and
        Ctrl-C it has either version, and all of it."""
        start = self._start
        if start.hold is None or start.appends or self._bytes.is_changed():
            self._do(self._bytes.store)
            self._name(replace(start.file, parts=(), modified_ns=time.time_ns()))
        self._end()

    def _name(self, file: File) -> None:
        holds, made, start = self._shared.holds, self._bytes.new_tables(), self._start
        added = self._bytes.added() if start.appends else None
        if added is None:
            file = replace(file, parts=_parts(self._bytes.parts()))
            hold = holds.put(self._at, file, made, start.hold, only_new=start.only_new)
        else:
            _, hold = holds.append(self._at, replace(file, parts=_parts(added)), made)
        hold.close()
        self._bytes.publish(self._bytes.parts())

    def discard(self) -> None:
        """Nothing of it is left."""
        self._bytes.publish([])
        self._end()

    def _end(self) -> None:
        self._shared.holds.free(self._bytes.take_unused())
        if self._start.hold is not None:
            self._start.hold.close()

    def _do(self, act: Callable[[], T]) -> T:
        self._shared.worker.check_process()
        try:
            return self._do_with_room(act)
        except ValueError:
            # A table that it was to write is no more, as this process was taken for dead.
            pass
        try:
            return self._do_with_room(act)
        except ValueError as error:
            raise OSError(errno.ESTALE, f"this version of the file is no more: {error}") from None

    def _do_with_room(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except TimeoutError as error:
            raise TimeoutError(f"{error}{self._shared.worker.about_store()}") from None
        except OSError as error:
            is_of_servers = error.errno is None  # they have no room
            if not is_of_servers or not wait_for_room(self._shared.board):
                raise
        return act()


def _parts(pairs: list[tuple[int, int]]) -> tuple[Part, ...]:
    return tuple(Part(table, size) for table, size in pairs)
