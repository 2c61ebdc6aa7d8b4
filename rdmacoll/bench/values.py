"""What goes into the tensors and must come out of them, in any type exactly: ones and twos.

Each rank's are a random row that is repeated; its length is a prime, so that a part that lands in
another place shows. What a reduction makes of them is then the repeated reduction of the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

PERIOD = 1021
REDUCERS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.sum,
    "product": torch.prod,
    "min": torch.amin,
    "max": torch.amax,
}


@dataclass(frozen=True)
class Piece:
    """A part of a tensor: the elements from `first` on, of one rank's values or of all's."""

    rank: int | None  # None: of all ranks, reduced
    first: int
    count: int


class Values:
    def __init__(self, ranks: int, dtype: torch.dtype, reduction: str) -> None:
        self.dtype = dtype
        rows = torch.stack([_row(rank) for rank in range(ranks)])
        self._rows = rows.to(dtype)
        self._reduced = REDUCERS[reduction](rows, dim=0).to(dtype)  # integers wrap, as they shall

    def __call__(self, piece: Piece) -> torch.Tensor:
        row = self._reduced if piece.rank is None else self._rows[piece.rank]
        row = row.roll(-(piece.first % PERIOD))
        return row.repeat(-(-piece.count // PERIOD))[: piece.count]


def _row(rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(1, 3, (PERIOD,), generator=generator)
