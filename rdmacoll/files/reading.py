"""Reading: bytes of a version of a file, which lie in tables of the job's servers.

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
from .entry import HOLE, File, Part, TableFile

if TYPE_CHECKING:
    from .. import _C

FLOAT = 4  # bytes: what tables hold; bits of others pass through them as they are


@dataclass(frozen=True)
class _Piece:
    """Bytes of a part that are wanted, and where."""

    part: Part
    first: int
    out: memoryview


class Reading:
    def __init__(self, worker: Worker, timeout: float) -> None:
        """timeout: of each wait for servers, in seconds."""
        self._worker = worker
        self._client = worker.client
        self._timeout = timeout

    def read(self, file: File, first: int, out: memoryview) -> int:
        """The bytes from `first` on; how many there were. Raises OSError (ESTALE) for a version
        that was replaced or removed, and that nobody holds; TimeoutError, remote.PeerError."""
        self._worker.check_process()
        pending = []
        count = 0
        for piece in _pieces(file.parts, first, out):
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
        if isinstance(file, TableFile):
            head = file.head[first : first + count]
            out[: len(head)] = head
        return count

    def _wait(self, batch: _C.PsBatch) -> None:
        try:
            batch.wait(self._timeout)
        except TimeoutError as error:
            raise TimeoutError(f"{error}{self._worker.about_store()}") from None
        except ValueError as error:  # the table was dropped
            raise OSError(errno.ESTALE, f"this version of the file is no more: {error}") from None

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
