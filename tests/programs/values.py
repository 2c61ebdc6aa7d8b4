"""What every rank contributes: a function of the operation's seed, the rank, the tensor's number.

Operations that only move data carry arbitrary bits. Reductions get small integers, which add up
exactly in every order, or large ones, whose sums overflow alike in every order.
"""

from __future__ import annotations

import torch
from memory import logical
from program import BITWISE, FLOATS, IN_PLACE, PREMUL, REDUCING, UNSIGNED, Op
from torch import Tensor

_OBJECT = 300  # characters of the longest object
# No power of it has a part that is zero: the sign of such a part depends on the order.
_NEVER_ZERO = 1 + 2j


def contribution(op: Op, me: int, index: int) -> Tensor:
    """What the tensor holds, flat, wherever it lies."""
    count = op.inputs(me)[index]
    part = op.parts[me]
    layout = "flat" if op.kind in IN_PLACE or op.alias else part.layout_in
    return logical(_flat(op, me, index, count), op.shape(count), layout)


def contributions(op: Op, me: int) -> list[Tensor]:
    return [contribution(op, me, index) for index in range(len(op.inputs(me)))]


def sent(op: Op, index: int) -> Tensor:
    """The content of the message of this number."""
    return _flat(op, 0, index, op.messages[index].count)


def thing(op: Op, me: int, index: int = 0) -> object:
    """An object of a size of its own."""
    length = (op.data * 7 + me * 31 + index * 11) % _OBJECT
    return {"rank": me, "index": index, "text": "x" * length, "data": op.data}


def sparse(op: Op, me: int) -> Tensor:
    source = _generator(op, me, 0)
    entries = op.counts[me]
    indices = torch.randint(0, 4, (2, entries), generator=source)
    numbers = torch.randint(-5, 6, (entries, 3), generator=source)
    return torch.sparse_coo_tensor(indices, numbers.to(op.torch_dtype), (4, 4, 3))


def _generator(op: Op, me: int, index: int) -> torch.Generator:
    return torch.Generator().manual_seed((op.data * 1009 + me) * 1009 + index)


def _flat(op: Op, me: int, index: int, count: int) -> Tensor:
    source = _generator(op, me, index)
    dtype = op.torch_dtype
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=source).bool()
    if op.kind not in REDUCING:
        raw = torch.randint(0, 256, (count * dtype.itemsize,), generator=source, dtype=torch.uint8)
        return raw.view(dtype)
    integers = _integers(op, count, source)
    if dtype.is_complex and op.reduce == "PRODUCT":
        return (integers * _NEVER_ZERO).to(dtype)
    if dtype.is_complex:
        return torch.complex(integers.double(), _integers(op, count, source).double()).to(dtype)
    return integers.to(dtype)


def _integers(op: Op, count: int, source: torch.Generator) -> Tensor:
    if op.wide or op.reduce in BITWISE:
        bits = 8 * op.torch_dtype.itemsize - 2  # so that sums in int64 wrap as theirs do
        integers = torch.randint(-(1 << bits), 1 << bits, (count,), generator=source)
    elif op.reduce == "PRODUCT":
        integers = torch.tensor([1, 2, 1, -1])[torch.randint(0, 4, (count,), generator=source)]
    else:
        integers = torch.randint(-5, 6, (count,), generator=source)
    if op.reduce == "AVG" and op.dtype not in FLOATS and not op.torch_dtype.is_complex:
        return integers.abs() if op.dtype in UNSIGNED else integers
    if op.reduce == "AVG":
        integers *= op.group.size
    if op.reduce == PREMUL:
        integers *= 2
    return integers.abs() if op.dtype in UNSIGNED else integers
