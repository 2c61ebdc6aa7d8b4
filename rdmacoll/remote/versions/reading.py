"""What is to be read of a published state, and where it goes: the way of each owner's bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import torch

from ..memory.kind import Kind
from ..memory.layout import Layout, padded
from .parts import Part
from .table import Table

FromToBytes = tuple[int, int, int]


@dataclass(frozen=True)
class Move:
    """Rows that an owner has of a tensor, and the tensor in this process's memory they go to."""

    name: str
    rows: Part
    key: Hashable
    into: Part  # what that tensor is of the whole


@dataclass(frozen=True)
class Copy:
    """Of rows that were read aside, what is wanted."""

    key: Hashable
    index: tuple[slice, ...]
    name: str
    to: tuple[slice, ...]


class Reading:
    """A part of each tensor, read to memory of its own.

    Rows that are wanted as they lie at their owner are read to where they belong; of others the
    whole rows are read aside, and the part of them is copied.
    """

    def __init__(
        self, table: Table, wanted: Mapping[str, Part], allocate: Callable[[int], torch.Tensor]
    ) -> None:
        self._names = list(wanted)
        self._copies: list[Copy] = []
        kinds: dict[Hashable, Kind] = {
            name: Kind(table.tensors[name].kind.dtype, part.sizes) for name, part in wanted.items()
        }
        moves: dict[int, list[Move]] = {}
        for name, part in wanted.items():
            dtype = kinds[name].dtype
            for owner, theirs in table.tensors[name].parts.items():
                both = part.overlap(theirs)
                if both is None:
                    continue
                rows = both.rows_in(theirs)
                if both == rows == both.rows_in(part):
                    move = Move(name, rows, name, part)
                else:
                    move = Move(name, rows, (name, owner), rows)
                    kinds[move.key] = Kind(dtype, rows.sizes)
                    self._copies.append(
                        Copy(move.key, both.index_in(rows), name, both.index_in(part))
                    )
                moves.setdefault(owner, []).append(move)
        self._layout = Layout(kinds)
        self.memory = allocate(max(self._layout.bytes, 1))
        self.parts = {owner: self._ways(table, owner, its) for owner, its in moves.items()}
        if not self.parts:
            self.parts = {table.needed()[0]: [(0, 0, 0)]}  # which tells the version
        self.begin()

    def begin(self) -> None:
        """Forgets what was read."""
        self.versions = dict.fromkeys(self.parts, 0)  # of what is in the memory, by owner

    def result(self) -> dict[str, torch.Tensor]:
        """What was read, as views of the memory."""
        for copy in self._copies:
            to = self._layout.view(self.memory, copy.name)[copy.to]
            to.copy_(self._layout.view(self.memory, copy.key)[copy.index])
        return {name: self._layout.view(self.memory, name) for name in self._names}

    def _ways(self, table: Table, owner: int, moves: list[Move]) -> list[FromToBytes]:
        theirs = table.layout_of(owner)
        ways: list[FromToBytes] = []
        for move in moves:
            of_owner = table.tensors[move.name].parts[owner]
            element = self._layout.kinds[move.key].dtype.itemsize
            first = theirs.offsets[move.name] + move.rows.elements_before(of_owner) * element
            to = self._layout.offsets[move.key] + move.rows.elements_before(move.into) * element
            bytes = move.rows.elements * element
            if move.rows == of_owner == move.into:
                bytes = padded(bytes)  # so that neighbours are one
            if ways and (first, to) == (ways[-1][0] + ways[-1][2], ways[-1][1] + ways[-1][2]):
                first, to, bytes = ways[-1][0], ways[-1][1], ways[-1][2] + bytes
                ways.pop()
            ways.append((first, to, bytes))
        return ways
