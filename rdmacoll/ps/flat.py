"""Flat: the parameters of a group one behind the other, as one dense table has them.

Those that need a gradient come first, so that what is pushed in a step is one range.
Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .base.optimizers import SGD, Adagrad, Adam, AdamW
from .base.optimizers import Optimizer as Rule
from .base.rates import AS_MADE
from .base.staging import empty_pinned, is_staged, pin, settle

LANDING_ELEMENTS = 64 * 1024


class Flat:
    def __init__(self, table: str, group: dict[str, Any], rule: Rule) -> None:
        """group: of a torch optimizer. Raises TypeError for a parameter that cannot lie there."""
        names = group.get("param_names")
        named = [
            (f"parameter {names[number] if names else number} of {table!r}", parameter)
            for number, parameter in enumerate(group["params"])
        ]
        for name, parameter in named:
            _check(name, parameter)
        named.sort(key=lambda one: not one[1].requires_grad)
        self.table = table
        self.rule = rule
        self.rates = AS_MADE  # of the next push
        self._named = named
        self._trained = [name for name, parameter in named if parameter.requires_grad]
        self.trained = sum(
            p.numel() for _, p in named if p.requires_grad
        )  # elements, the first ones
        self._ends = torch.tensor([p.numel() for _, p in named]).cumsum(0).tolist()
        self._staged = {p.device for _, p in named if is_staged(p)}  # devices
        elements = self._ends[-1] if named else 0
        self.values = empty_pinned(elements) if self._staged else torch.empty(elements)
        self.gradients = torch.empty(0)  # until there is room for them

    def use_room(self, room: torch.Tensor) -> None:
        """For the gradients: elements as many as the values are."""
        if self._staged:
            pin(room, self)
        self.gradients = room

    @property
    def trained_gradients(self) -> torch.Tensor:
        return self.gradients[: self.trained]

    @property
    def layout(self) -> list[Any]:
        """What all workers must have alike."""
        return [(tuple(p.shape), p.requires_grad) for _, p in self._named]

    def _places(self, flat: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """Of each parameter its name, itself, and where it is there."""
        first = 0
        for (name, parameter), end in zip(self._named, self._ends, strict=True):
            yield name, parameter, flat[first:end].view(parameter.shape)
            first = end

    @torch.no_grad()
    def gather(self) -> torch.Tensor:
        for _, parameter, place in self._places(self.values):
            place.copy_(parameter, non_blocking=True)
        settle(self._staged)
        return self.values

    def landings(self, elements: int) -> list[tuple[int, torch.Tensor]]:
        """Where the first so many values are pulled to, and from which element on: large parameters
        themselves, and what is between them here, from where scatter() copies it."""
        landings, first, begin = [], 0, 0
        for (_, parameter), end in zip(self._named, self._ends, strict=True):
            if end > elements:
                break
            if _is_landing(parameter):
                landings.append((first, parameter.detach().view(-1)))
                if begin < first:
                    landings.append((begin, self.values[begin:first]))
                begin = end
            first = end
        if begin < first:
            landings.append((begin, self.values[begin:first]))
        return landings

    @torch.no_grad()
    def scatter(self) -> None:
        for _, parameter, place in self._places(self.values):
            if _is_landing(parameter):
                torch.autograd.graph.increment_version(parameter)  # as copy_() does
            else:
                parameter.copy_(place, non_blocking=True)
        settle(self._staged)  # the next pull writes to what is copied here

    def gather_all_gradients(self) -> None:
        """Raises ValueError where one that needs a gradient has none, or another one has."""
        for name, parameter in self._named:
            if (parameter.grad is not None) != (name in self._trained):
                has = "a" if parameter.grad is not None else "no"
                raise ValueError(
                    f"{name} has {has} gradient, unlike when the optimizer was made; where workers "
                    "wait for each other all have one in each step: give it one, of zeros, or make "
                    "the optimizer without it"
                )
        self.gather_gradients()

    def gather_gradients(self) -> list[tuple[int, int]]:
        """Which elements there are gradients for, from and to. Raises ValueError."""
        have = [name for name, parameter in self._named if parameter.grad is not None]
        if have and have != self._trained and _counts_steps(self.rule):
            odd = next(n for n, _ in self._named if (n in have) != (n in self._trained))
            raise ValueError(
                f"{odd} has {'a' if odd in have else 'no'} gradient, unlike others; "
                f"{type(self.rule).__name__} counts the steps of a whole group at the servers: "
                "give it a group of its own, or set requires_grad before the optimizer is made"
            )
        ranges: list[tuple[int, int]] = []
        for name, parameter, place in self._places(self.gradients):
            if parameter.grad is None:
                continue
            if parameter.grad.layout != torch.strided:
                raise ValueError(
                    f"{name} has a gradient that is {parameter.grad.layout}; take sparse=False, or "
                    "ps.Embedding or ps.EmbeddingBag in the place of the module"
                )
            place.copy_(parameter.grad, non_blocking=True)
            first = int(place.storage_offset())
            begin = ranges.pop()[0] if ranges and ranges[-1][1] == first else first
            ranges.append((begin, first + place.numel()))
        settle(self._staged)
        return ranges


def _is_landing(parameter: torch.Tensor) -> bool:
    """Whether it is worth a pull of its own, which saves a copy."""
    is_large = parameter.numel() >= LANDING_ELEMENTS
    return is_large and parameter.is_contiguous() and not is_staged(parameter)


def _check(name: str, parameter: torch.Tensor) -> None:
    kind = type(parameter.detach())
    if kind is not torch.Tensor:
        raise TypeError(f"{name} is a {kind.__name__}; servers hold plain tensors")
    if parameter.dtype != torch.float32:
        raise TypeError(f"{name} has dtype {parameter.dtype}; servers hold float32: convert it")
    is_reached = parameter.device.type == "cpu" or is_staged(parameter)
    if not is_reached or parameter.layout != torch.strided:
        raise TypeError(
            f"{name} is {parameter.layout} on {parameter.device}; servers work with strided "
            "tensors on the CPU, or on a GPU that torch has: move it there"
        )


def _counts_steps(rule: Rule) -> bool:
    """Whether a step's number changes what it does. Servers count for a whole shard."""
    if isinstance(rule, SGD):
        return rule.momentum != 0 and rule.dampening != 0
    if isinstance(rule, Adagrad):
        return rule.lr_decay != 0
    return isinstance(rule, Adam | AdamW)
