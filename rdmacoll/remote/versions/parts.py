"""Parts of a tensor: boxes of the whole. Where one lies in another, and which make up a whole."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """In each dimension of the whole, `sizes` indices from `offsets` on."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def whole(shape: Sequence[int]) -> Part:
        return Part((0,) * len(shape), tuple(shape))

    @property
    def elements(self) -> int:
        return math.prod(self.sizes)

    def overlap(self, other: Part) -> Part | None:
        """What both have; None: nothing."""
        offsets = tuple(map(max, self.offsets, other.offsets))
        ends = map(min, self._ends(), other._ends())
        sizes = tuple(end - first for first, end in zip(offsets, ends, strict=True))
        return Part(offsets, sizes) if all(size > 0 for size in sizes) else None

    def rows_in(self, other: Part) -> Part:
        """The whole rows of `other` that hold this part of it. Their elements lie together."""
        return Part(
            self.offsets[:1] + other.offsets[1:],
            self.sizes[:1] + other.sizes[1:],
        )

    def elements_before(self, other: Part) -> int:
        """How many of the elements of `other` come before this part, which is rows of it."""
        if not self.sizes:
            return 0
        return (self.offsets[0] - other.offsets[0]) * math.prod(other.sizes[1:])

    def index_in(self, other: Part) -> tuple[slice, ...]:
        """With which a tensor that is `other` gives this part of it."""
        firsts = [mine - its for mine, its in zip(self.offsets, other.offsets, strict=True)]
        return tuple(
            slice(first, first + size) for first, size in zip(firsts, self.sizes, strict=True)
        )

    def _ends(self) -> list[int]:
        return [first + size for first, size in zip(self.offsets, self.sizes, strict=True)]


def make_up(parts: Sequence[Part], shape: Sequence[int]) -> bool:
    """Whether each element of the shape is in exactly one of the parts, of which none is empty.

    They are cut as meshes cut: through the whole in the first dimension, and so on in each piece.
    """
    if any(not len(part.offsets) == len(part.sizes) == len(shape) for part in parts):
        return False
    boxes = [list(zip(part.offsets, part.sizes, strict=True)) for part in parts]
    return _fill(boxes, shape) if math.prod(shape) else not boxes


def _fill(boxes: list[list[tuple[int, int]]], shape: Sequence[int]) -> bool:
    if not shape:
        return len(boxes) == 1
    pieces: dict[tuple[int, int], list[list[tuple[int, int]]]] = defaultdict(list)
    for first, *others in boxes:
        pieces[first].append(others)
    end = 0
    for (offset, size), inside in sorted(pieces.items()):
        if offset != end or size <= 0 or not _fill(inside, shape[1:]):
            return False
        end += size
    return end == shape[0]
