"""The processes of one way, a parameter holder and its workers, and what every way can do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist

Told = TypeVar("Told")


@dataclass(frozen=True)
class Team:
    ranks: list[int]  # the holder's, then those of the workers
    place: int  # of this process among them
    control: dist.ProcessGroup  # of them, beside what is measured

    @property
    def holds(self) -> bool:
        return self.place == 0

    @property
    def workers(self) -> int:
        return len(self.ranks) - 1

    @property
    def worker(self) -> int:
        """The number of this one."""
        return self.place - 1

    def tell(self, by: int, what: Told) -> Told:
        """All call it; what the one at this place has said."""
        said = [what]
        dist.broadcast_object_list(said, self.ranks[by], group=self.control)
        return said[0]

    def meet(self) -> None:
        dist.barrier(group=self.control)


class Way:
    """All processes of the team make one.

    `parameters` are the holder's, and what a worker has got of them. `gradients` are what a worker
    computes, alone in its list, and at the holder what they have handed in, in their order.
    """

    parameters: torch.Tensor
    gradients: list[torch.Tensor]
    form = ""  # which of several was taken for this model

    def __init__(self, team: Team) -> None:
        self.team = team

    def prepare(self, elements: int, update: Callable[[], None]) -> None:
        """All call it: tensors of so many elements, and all that is done once for many steps. The
        holder calls `update` once all gradients of a step are there."""
        self.parameters = torch.zeros(elements)
        count = self.team.workers if self.team.holds else 1
        self.gradients = [torch.zeros(elements) for _ in range(count)]

    def choose_form(self) -> None:
        """All call it, before what is measured. Whatever becomes of the parameters is undone."""

    def pull(self) -> None:
        """A worker gets the parameters."""
        raise NotImplementedError

    def push(self) -> None:
        """A worker hands its gradients in; returns once the holder has updated the parameters."""
        raise NotImplementedError

    def serve(self, steps: int) -> None:
        """What the holder's program does for so many steps, where threads do not do it."""

    def close(self) -> None:
        """All call it."""
