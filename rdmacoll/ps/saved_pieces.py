"""What a snapshot has of a table: tensors, in pieces that are read from servers and written to them
one at a time. A piece lies in chunks of these tensors, as torch.distributed.checkpoint wants them.

Floor: rdmacoll/ps. Thread: the one that takes the snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from .._extension import extension
from .board import Table

if TYPE_CHECKING:
    from .. import _C

PIECE_SHARDS = 8  # of a dense table: 8 MiB of each of its tensors
PIECE_BYTES = 32 << 20  # of rows
LIST_IDS = 8192  # at once
LIST_BUCKETS = 16  # at once
COUNT_FLOATS = 2  # what servers have before floats: a number of pushes (csrc/ps/table/saved.h)
STATES = OF_MOMENTUM, OF_ADAM, OF_ADAGRAD = (
    ("momentum_buffer",),
    ("exp_avg", "exp_avg_sq"),
    ("sum",),
)
ID_MASK = (1 << 64) - 1  # servers sort ids as unsigned ones


@dataclass(frozen=True)
class Kept:
    """A tensor of a snapshot."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class Chunk:
    """A box of such a tensor, and where its elements begin in the tensor's part of a piece."""

    name: str
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    first: int = 0

    def within(self, parts: dict[str, torch.Tensor]) -> torch.Tensor:
        flat = parts[self.name].view(-1)
        return flat[self.first : self.first + math.prod(self.sizes)].view(self.sizes)


class Saved:
    """A table of this worker, and the names of what a snapshot has of it."""

    def __init__(self, client: _C.PsClient, name: str, table: Table, timeout: float) -> None:
        self.client, self.name, self.table, self.timeout = client, name, table, timeout
        self.spec = extension().PsTableSpec.parse(table.spec)
        self.pushes = pushes_name(name)
        self.ids = ids_name(name)
        self._states = [state_name(name, state) for state in state_names(self.spec.optimizer)]
        # Of the state as large as the values, and of that of a whole row.
        arrays = self.spec.arrays - 1
        self.states, self.row_states = self._states[:arrays], self._states[arrays:]

    def tensors(self, rows: int) -> dict[str, Kept]:
        """rows: how many a table of rows has."""
        shape = (rows, *self.table.shape) if self.spec.is_rows else self.table.shape
        kept = {name: Kept(shape) for name in (self.name, *self.states)}
        counted = rows if self.spec.is_rows else len(self.shards)
        kept |= {name: Kept((rows,)) for name in self.row_states}
        kept[self.pushes] = Kept((counted,), torch.int64)
        if self.spec.is_rows:
            kept[self.ids] = Kept((rows,), torch.int64)
        return kept

    @cached_property
    def shards(self) -> range:
        return range(-(-self.spec.elements // extension().PS_SHARD_ELEMENTS))

    def wait(self, *batches: _C.PsBatch) -> None:
        for batch in batches:
            batch.wait(self.timeout)


def all_names(table: str) -> list[str]:
    """All that a snapshot may have of a table."""
    states = sorted({state for states in STATES for state in states})
    return [table, ids_name(table), pushes_name(table)] + [state_name(table, s) for s in states]


def state_name(table: str, state: str) -> str:
    return f"{table}.state/{state}"


def pushes_name(table: str) -> str:
    return state_name(table, "pushes")


def ids_name(table: str) -> str:
    return f"{table}.ids"


def state_names(optimizer: _C.PsOptimizer | None) -> tuple[str, ...]:
    """As torch's optimizers have them."""
    kinds = extension().OptimizerKind
    if optimizer is None:
        return ()
    if optimizer.kind == kinds.SGD:
        return OF_MOMENTUM if optimizer.momentum != 0 else ()
    return OF_ADAM if optimizer.kind in (kinds.ADAM, kinds.ADAMW) else OF_ADAGRAD


# --- dense tables -------------------------------------------------------------------------------


class DensePiece:
    """Neighbouring shards. Each is of one version: its values, its state, and its pushes."""

    def __init__(self, saved: Saved, shards: range) -> None:
        self._saved, self._shards = saved, shards
        whole = extension().PS_SHARD_ELEMENTS
        self._first = shards.start * whole
        self._sizes = [min(whole, saved.spec.elements - shard * whole) for shard in shards]

    @property
    def chunks(self) -> list[Chunk]:
        saved = self._saved
        boxes = list(boxes_of(self._first, self._first + sum(self._sizes), saved.table.shape))
        return [
            Chunk(name, offsets, sizes, first)
            for name in (saved.name, *saved.states)
            for offsets, sizes, first in boxes
        ] + [Chunk(saved.pushes, (self._shards.start,), (len(self._shards),))]

    def empty(self) -> dict[str, torch.Tensor]:
        saved = self._saved
        parts = {name: torch.empty(sum(self._sizes)) for name in (saved.name, *saved.states)}
        return parts | {saved.pushes: torch.empty(len(self._shards), dtype=torch.int64)}

    def read(self) -> dict[str, torch.Tensor]:
        saved, client = self._saved, self._saved.client
        arrays = saved.spec.arrays
        found = [torch.empty(arrays, COUNT_FLOATS + size) for size in self._sizes]
        left = list(range(len(found)))
        while left:  # again, if a server was lost between the arrays of a shard
            saved.wait(
                *(
                    client.save_shard(
                        saved.table.number, self._shards[at], found[at], saved.timeout
                    )
                    for at in left
                )
            )
            left = [at for at in left if len(set(_counts(found[at]).tolist())) > 1]
        parts = {
            name: torch.cat([shard[array, COUNT_FLOATS:] for shard in found])
            for array, name in enumerate((saved.name, *saved.states))
        }
        return parts | {saved.pushes: torch.cat([_counts(shard)[:1] for shard in found])}

    def write(self, parts: dict[str, torch.Tensor]) -> None:
        saved = self._saved
        batches = []
        first = 0
        for at, (shard, size) in enumerate(zip(self._shards, self._sizes, strict=True)):
            whole = torch.empty(saved.spec.arrays, COUNT_FLOATS + size)
            for array, name in enumerate((saved.name, *saved.states)):
                _put_counts(whole[array : array + 1], parts[saved.pushes][at : at + 1])
                whole[array, COUNT_FLOATS:] = parts[name][first : first + size]
            batches.append(
                saved.client.restore_shard(saved.table.number, shard, whole, saved.timeout)
            )
            first += size
        saved.wait(*batches)


def dense_pieces(saved: Saved) -> list[DensePiece]:
    shards = saved.shards
    return [
        DensePiece(saved, shards[first : first + PIECE_SHARDS])
        for first in range(0, len(shards), PIECE_SHARDS)
    ]


def boxes_of(
    first: int, end: int, shape: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """The boxes that elements of a flattened tensor make in its shape: offsets, sizes, and where
    each begins among the elements. They come in the elements' order."""
    if not shape:
        yield (), (), 0
        return
    row = math.prod(shape[1:])
    begin = first
    while begin < end:
        at, inside = divmod(begin, row)
        if inside == 0 and end - begin >= row:
            whole = (end - begin) // row
            yield (at, *[0] * (len(shape) - 1)), (whole, *shape[1:]), begin - first
            begin += whole * row
            continue
        stop = min(end, (at + 1) * row)
        for offsets, sizes, inner in boxes_of(inside, inside + stop - begin, shape[1:]):
            yield (at, *offsets), (1, *sizes), begin - first + inner
        begin = stop


# --- tables of rows -----------------------------------------------------------------------------


class RowPiece:
    """Some rows, from one on of those that the snapshot has. Each is whole."""

    def __init__(self, saved: Saved, first: int, count: int, ids: torch.Tensor | None = None):
        """ids: of a snapshot that is taken."""
        self._saved, self._first, self._count, self._ids = saved, first, count, ids

    @property
    def chunks(self) -> list[Chunk]:
        return [
            Chunk(name, (self._first, *[0] * len(kept.shape[1:])), kept.shape)
            for name, kept in self._saved.tensors(self._count).items()
        ]

    def empty(self) -> dict[str, torch.Tensor]:
        return {
            name: torch.empty(kept.shape, dtype=kept.dtype)
            for name, kept in self._saved.tensors(self._count).items()
        }

    def _floats(self, whole: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """Of each tensor of floats, where a row has it."""
        saved = self._saved
        first = COUNT_FLOATS
        for name in (saved.name, *saved.states):
            yield name, whole[:, first : first + saved.spec.dim]
            first += saved.spec.dim
        for at, name in enumerate(saved.row_states):
            yield name, whole[:, first + at]

    def _whole(self) -> torch.Tensor:
        return torch.empty(self._count, COUNT_FLOATS + self._saved.spec.row_floats)

    def read(self) -> dict[str, torch.Tensor]:
        saved = self._saved
        assert self._ids is not None
        whole = self._whole()
        saved.wait(saved.client.save_rows(saved.table.number, self._ids, whole, saved.timeout))
        parts = {name: floats.contiguous() for name, floats in self._floats(whole)}
        return parts | {saved.pushes: _counts(whole), saved.ids: self._ids}

    def write(self, parts: dict[str, torch.Tensor]) -> None:
        saved = self._saved
        whole = self._whole()
        _put_counts(whole, parts[saved.pushes])
        for name, floats in self._floats(whole):
            floats.copy_(parts[name])
        saved.wait(
            saved.client.restore_rows(saved.table.number, parts[saved.ids], whole, saved.timeout)
        )


def list_rows(saved: Saved, buckets: range) -> torch.Tensor:
    """The ids of the rows that these buckets have now."""
    found: list[torch.Tensor] = []
    for first in range(0, len(buckets), LIST_BUCKETS):
        begin = dict.fromkeys(buckets[first : first + LIST_BUCKETS], 0)
        while begin:
            lists = {bucket: torch.empty(1 + LIST_IDS, dtype=torch.int64) for bucket in begin}
            saved.wait(
                *(
                    saved.client.list_rows(
                        saved.table.number, bucket, begin[bucket], out, saved.timeout
                    )
                    for bucket, out in lists.items()
                )
            )
            begin = {}
            for bucket, out in lists.items():
                count = int(out[0])
                found.append(out[1 : 1 + count].clone())
                last = int(out[count]) & ID_MASK
                if count == LIST_IDS and last < ID_MASK:
                    begin[bucket] = last + 1
    return torch.cat(found) if found else torch.empty(0, dtype=torch.int64)


def row_pieces(saved: Saved, first: int, ids: torch.Tensor) -> list[RowPiece]:
    """first: of these in the whole snapshot."""
    row_bytes = 4 * (COUNT_FLOATS + saved.spec.row_floats)
    most = max(PIECE_BYTES // row_bytes, 1)
    return [
        RowPiece(saved, first + at, len(some), some)
        for at, some in ((at, ids[at : at + most]) for at in range(0, len(ids), most))
    ]


def _counts(saved: torch.Tensor) -> torch.Tensor:
    """The numbers of pushes before rows of floats."""
    return saved.view(torch.int32)[:, :COUNT_FLOATS].flatten().clone().view(torch.int64)


def _put_counts(saved: torch.Tensor, counts: torch.Tensor) -> None:
    saved.view(torch.int32)[:, :COUNT_FLOATS] = counts.view(torch.int32).view(-1, COUNT_FLOATS)


Piece = DensePiece | RowPiece
