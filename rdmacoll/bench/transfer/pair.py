"""Two processes that one way goes between, and what every way can do."""

from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist

Told = TypeVar("Told")


@dataclass(frozen=True)
class Pair:
    """The sender and the receiver of a way, as each of the two sees them."""

    rank: int
    sends: bool
    control: dist.ProcessGroup  # of the two, beside what is measured

    @property
    def other(self) -> int:
        return self.rank + 1 if self.sends else self.rank - 1

    @property
    def ranks(self) -> list[int]:
        return sorted((self.rank, self.other))

    def swap(self, mine: Told) -> Told:
        """Both call it; what the other has said."""
        both: list[Told | None] = [None, None]
        dist.all_gather_object(both, mine, group=self.control)
        theirs = both[1 if self.sends else 0]
        assert theirs is not None
        return theirs

    def meet(self) -> None:
        dist.barrier(group=self.control)


class Way:
    """Both processes make one. `source` is the sender's, `target` the receiver's."""

    source: torch.Tensor
    target: torch.Tensor
    form = ""  # which of several was taken for this size

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def prepare(self, size_bytes: int) -> None:
        """Both call it: tensors of this size, and all that is done once for many transfers."""
        if self.pair.sends:
            self.source = torch.zeros(size_bytes, dtype=torch.uint8)
        else:
            self.target = torch.zeros(size_bytes, dtype=torch.uint8)

    def choose_form(self) -> None:
        """The sender's, before what is measured."""

    def send(self) -> None:
        """One transfer; when it returns the sender knows that the data are in the target."""
        raise NotImplementedError

    def serve(self, count: int) -> None:
        """What the receiver's program does for so many transfers, where threads do not do it."""

    def counters(self) -> dict[str, int]:
        """What this process has done so far beside moving data."""
        return {}

    def close(self) -> None:
        """Both call it."""
