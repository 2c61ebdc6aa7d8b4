"""One operation on one size: its tensors, what goes in, and what must be in them afterwards.

All systems work on the same tensors, in turns.
"""

from dataclasses import dataclass

import torch

from .frame.job import ROOT, WrongResult
from .memory import empty
from .operations import OPERATIONS
from .values import Piece, Values


@dataclass(frozen=True)
class Place:
    rank: int
    ranks: int


class Case:
    """`input` and `output` are one tensor where the operation works in place."""

    def __init__(
        self,
        operation: str,
        elements: int,
        values: Values,
        place: Place,
        in_place: bool,
        memory: str = "ordinary",
    ) -> None:
        self.operation, self.elements, self.place = operation, elements, place
        self.in_place = in_place
        self._memory = memory
        self._values = values
        self._dtype = values.dtype
        self.part = elements // place.ranks if OPERATIONS[operation].of_parts else elements
        self.input, self.output = self._tensors()

    @property
    def bytes(self) -> int:
        return self.elements * self._dtype.itemsize

    def _empty(self, elements: int) -> torch.Tensor:
        return empty(elements, self._dtype, self._memory)

    def _tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        mine = slice(self.place.rank * self.part, (self.place.rank + 1) * self.part)
        whole = self._empty(self.elements)
        match self.operation:
            case "all_gather":
                return whole[mine] if self.in_place else self._empty(self.part), whole
            case "gather":
                return self._empty(self.part), whole
            case "reduce_scatter":
                return whole, whole[mine] if self.in_place else self._empty(self.part)
            case "scatter":
                return whole, self._empty(self.part)
            case "all_to_all" | "send_recv":
                return whole, self._empty(self.elements)
        return whole, whole

    def fill(self) -> None:
        """Puts this rank's values in; what was there before is gone."""
        self.output.zero_()
        self.input.copy_(self._values(Piece(self.place.rank, 0, self.input.numel())))

    def expected(self) -> list[Piece]:
        """What the output is made of, in order; empty where this rank gets none."""
        rank, ranks, part = self.place.rank, self.place.ranks, self.part
        match self.operation:
            case "all_reduce":
                return [Piece(None, 0, part)]
            case "reduce":
                return [Piece(None, 0, part)] if rank == ROOT else []
            case "broadcast":
                return [Piece(ROOT, 0, part)]
            case "all_gather":
                return [Piece(other, 0, part) for other in range(ranks)]
            case "gather":
                return [Piece(other, 0, part) for other in range(ranks)] if rank == ROOT else []
            case "reduce_scatter":
                return [Piece(None, rank * part, part)]
            case "scatter":
                return [Piece(ROOT, rank * part, part)]
            case "all_to_all":
                return [Piece(other, rank * part, part) for other in range(ranks)]
            case "send_recv":
                return [Piece((rank - 1) % ranks, 0, part)]
        return []

    def check(self, system: str) -> None:
        """Raises WrongResult unless the output is exactly what it must be."""
        for number, piece in enumerate(self.expected()):
            first = number * self.part
            got, wanted = self.output[first : first + self.part], self._values(piece)
            if torch.equal(got, wanted):
                continue
            at = int((got != wanted).nonzero()[0])
            raise WrongResult(
                f"{system} computes something else: {self.operation} of {self.bytes} B "
                f"on rank {self.place.rank}: element {first + at} is {got[at].item()}, "
                f"not {wanted[at].item()}"
            )
