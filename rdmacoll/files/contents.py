"""Contents: the bytes of files, in tables of the job's servers. A part of a file is a table that is
written once; servers keep it twice as any other one.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from .._extension import extension
from ..ps.worker import Worker
from .board import FileBoard
from .entry import HOLE, Part
from .holder import own_holder
from .room import wait_for_room

if TYPE_CHECKING:
    from .. import _C

FLOAT = 4  # bytes: what tables hold; bits of others pass through them as they are


@dataclass(frozen=True)
class _Piece:
    """Bytes of a part that are wanted, and where."""

    part: Part
    first: int
    out: memoryview


class Contents:
    def __init__(self, worker: Worker, board: FileBoard, timeout: float) -> None:
        """timeout: of each wait for servers, in seconds."""
        self._worker = worker
        self._board = board
        self._holder = own_holder(worker)
        self._client = worker.client
        self._timeout = timeout

    def write(self, data: memoryview) -> Part:
        """A new part, which servers have when this returns, and keep until this process ends, if no
        folder names it by then (Holds.put). Raises OSError where they have no room, TimeoutError,
        remote.PeerError: then nothing of it is left."""
        values = torch.zeros(_floats(len(data)))
        _bytes_of(values)[: len(data)] = torch.frombuffer(data, dtype=torch.uint8)
        (table,) = self._holder.make()
        part = Part(table, len(data))
        try:
            self._create(part)
            self._assign(part, values)
        except BaseException:
            self.free([part])
            raise
        return part

    def _assign(self, part: Part, values: torch.Tensor) -> None:
        try:
            self._wait(self._client.assign(part.table, values, self._timeout))
        except OSError as error:
            if isinstance(error, TimeoutError) or not wait_for_room(self._worker):
                raise
            self._wait(self._client.assign(part.table, values, self._timeout))

    def read(self, parts: Iterable[Part], first: int, out: memoryview) -> int:
        """The bytes from `first` on; how many there were. Raises OSError (ESTALE) for a version
        that was replaced or removed, and that nobody holds; TimeoutError, remote.PeerError."""
        self._worker.check_process()
        pending = []
        count = 0
        for piece in _pieces(parts, first, out):
            count += len(piece.out)
            if piece.part.table == HOLE:
                torch.frombuffer(piece.out, dtype=torch.uint8).zero_()
                continue
            self._create(piece.part)
            pending.append(self._begin(piece))
        for batches, finish in pending:
            for batch in batches:
                self._wait(batch)
            finish()
        return count

    def _wait(self, batch: _C.PsBatch) -> None:
        try:
            batch.wait(self._timeout)
        except ValueError as error:  # the table was dropped
            raise OSError(errno.ESTALE, f"this version of the file is no more: {error}") from None

    def free(self, parts: Iterable[Part]) -> None:
        """No folder names them, or none does any more. Returns at once; servers free them within a
        second of when nobody has them open."""
        tables = [part.table for part in parts if part.table != HOLE]
        self._board.throw_away(tables)
        self._holder.forget(tables)

    def _begin(self, piece: _Piece) -> tuple[list[_C.PsBatch], Callable[[], None]]:
        """What ends when the bytes are here, but for what the function copies then."""
        first, end = piece.first, piece.first + len(piece.out)
        # Floats that are wanted as a whole go to their place; what is before and behind, by a copy.
        whole, whole_end = _floats(first), end // FLOAT
        batches, edges, copies = [], [(first, end)], []
        if whole < whole_end:
            edges = [(first, whole * FLOAT), (whole_end * FLOAT, end)]
            at, count = whole * FLOAT - first, whole_end - whole
            into = torch.frombuffer(piece.out, dtype=torch.float32, count=count, offset=at)
            batches.append(self._pull(piece.part, whole, into))
        for at, at_end in edges:
            if at < at_end:
                around = torch.empty(_floats(at_end) - at // FLOAT)
                batches.append(self._pull(piece.part, at // FLOAT, around))
                wanted = _bytes_of(around)[at % FLOAT :][: at_end - at]
                copies.append((piece.out[at - first : at_end - first], wanted))

        def finish() -> None:
            for out, wanted in copies:
                torch.frombuffer(out, dtype=torch.uint8).copy_(wanted)

        return batches, finish

    def _pull(self, part: Part, first: int, into: torch.Tensor) -> _C.PsBatch:
        return self._client.pull(part.table, first, into, 0, self._timeout)

    def _create(self, part: Part) -> None:
        spec = extension().PsTableSpec.dense(f"file/{part.table}", _floats(part.size), None)
        self._client.create(part.table, spec.encode())


def _floats(size: int) -> int:
    return -(-size // FLOAT)


def _bytes_of(values: torch.Tensor) -> torch.Tensor:
    return values.view(torch.uint8)


def _pieces(parts: Iterable[Part], first: int, out: memoryview) -> Iterator[_Piece]:
    begin, done = 0, 0
    for part in parts:
        at = first + done - begin
        if 0 <= at < part.size and done < len(out):
            count = min(part.size - at, len(out) - done)
            yield _Piece(part, at, out[done : done + count])
            done += count
        begin += part.size
