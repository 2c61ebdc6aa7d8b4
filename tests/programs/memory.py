"""Tensors of every layout, in the heap or not: with gaps, transposed, expanded, negated.

A Buffer is a tensor in memory of its own. It also finds out whether anything beside it was written.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

import rdmacoll

MEMORIES = ("ordinary", "heap", "placed", "registered")
# Not "neg": torch hands a backend a copy of such a tensor, so that every backend's result is lost.
OUTPUT_LAYOUTS = ("flat", "offset", "strided", "transposed", "channels_last", "rows")
EXPANDED = ("expanded", "expanded_rows")
INPUT_LAYOUTS = (*OUTPUT_LAYOUTS, "neg", *EXPANDED)

_PATTERN = 0xA5
_TAIL = 3  # elements behind the tensor that are its own and stay as they are

Shape = tuple[int, ...]


def allocate(memory: str, count: int, dtype: torch.dtype) -> Tensor:
    if memory == "heap":
        return rdmacoll.empty(count, dtype=dtype)
    if memory == "placed":
        return rdmacoll.place_(torch.empty(count, dtype=dtype))
    if memory == "registered":
        with rdmacoll.registered_memory(1):
            return torch.empty(count, dtype=dtype)
    return torch.empty(count, dtype=dtype)


def strides(layout: str, shape: Shape) -> Shape:
    order = list(range(len(shape)))[::-1]  # dimensions, the innermost first
    step = 1
    match layout:
        case "strided":
            step = 3
        case "transposed":
            order.reverse()
        case "channels_last":
            order = [1, *[d for d in order if d != 1]] if len(shape) > 1 else order
        case "expanded":
            return (0,) * len(shape)
    made = [0] * len(shape)
    for place, dimension in enumerate(order):
        made[dimension] = step
        step *= max(shape[dimension], 1)
        if layout == "rows" and place == 0:
            step += 2
    if layout == "expanded_rows" and shape:
        made[0] = 0
    return tuple(made)


def applies(layout: str, dtype: torch.dtype) -> bool:
    if layout == "neg":
        return dtype in (torch.float32, torch.float64)
    return True


def unexpanded(layout: str, shape: Shape) -> Shape:
    """The shape without the repetition of expanded dimensions."""
    pairs = zip(shape, strides(layout, shape), strict=True)
    return tuple(1 if stride == 0 else size for size, stride in pairs)


def logical(flat: Tensor, shape: Shape, layout: str) -> Tensor:
    """What a tensor of this layout holds after it was filled with `flat`."""
    if flat.numel() == 0 or layout not in EXPANDED:
        return flat
    once = unexpanded(layout, shape)
    return flat[: math.prod(once)].view(once).expand(shape).reshape(-1)


class Buffer:
    def __init__(
        self, shape: Shape, dtype: torch.dtype, layout: str = "flat", memory: str = "ordinary"
    ) -> None:
        self.layout = layout if applies(layout, dtype) else "flat"
        self.shape = shape
        self._strides = strides(self.layout, shape)
        self._offset = {"offset": 1, "rows": 2}.get(self.layout, 0)
        reach = sum((size - 1) * stride for size, stride in zip(shape, self._strides, strict=True))
        count = self._offset + (reach + 1 if math.prod(shape) else 0) + _TAIL
        self.base = allocate(memory, count, dtype)
        self.base.view(torch.uint8).fill_(1 if dtype == torch.bool else _PATTERN)
        self._before = self.base.clone()
        self.view = self._view_of(self.base, shape)

    def _view_of(self, base: Tensor, shape: Shape) -> Tensor:
        view = base.as_strided(shape, self._strides, self._offset)
        return torch._neg_view(view) if self.layout == "neg" else view

    def fill(self, flat: Tensor) -> Buffer:
        """Its view then holds what logical() makes of `flat`."""
        if flat.numel():
            once = unexpanded(self.layout, self.shape)
            self._view_of(self.base, once).copy_(flat[: math.prod(once)].view(once))
            self._before.copy_(self.base)
        return self

    def as_expected(self, flat: Tensor | None) -> str:
        """Empty, or what is wrong: it must hold `flat` (None: what it was filled with), and nothing
        beside it may have been written. May be called once."""
        if flat is not None:
            self._view_of(self._before, self.shape).copy_(flat.view(self.shape))
        if torch.equal(self.base.view(torch.uint8), self._before.view(torch.uint8)):
            return ""
        got, want = (
            t.view(torch.uint8).view(-1, t.element_size()) for t in (self.base, self._before)
        )
        wrong = (got != want).any(1).nonzero().flatten()
        first = int(wrong[0])
        return (
            f"{len(wrong)} of {len(got)} elements of {self.layout} {self.shape} differ, from "
            f"element {first} of its memory (tensor from {self._offset}, strides {self._strides}): "
            f"got {self.base[first].item()}, expected {self._before[first].item()}"
        )
