"""Computes what an operation must give from what all ranks contribute; nothing is sent."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import values
from program import FLOATS, PREMUL, PREMUL_FACTOR, Op
from torch import Tensor

_FOLDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": torch.add,
    "AVG": torch.add,
    PREMUL: torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}
_OF_BOOLS = {**_FOLDS, "SUM": torch.logical_or, "PRODUCT": torch.logical_and}


def reduced(op: Op, inputs: list[Tensor]) -> Tensor:
    """Folds in a wider type, in which sums are exact, or wrap as those of the narrow type do."""
    dtype = op.torch_dtype
    wide = torch.int64
    if op.dtype in FLOATS:
        wide = torch.float64
    elif dtype.is_complex:
        wide = torch.complex128
    elif dtype == torch.bool:
        wide = torch.bool
    folds = _OF_BOOLS if wide == torch.bool else _FOLDS
    total = functools.reduce(folds[op.reduce], (tensor.to(wide) for tensor in inputs))
    if op.reduce == "AVG":
        if wide == torch.int64:
            wrapped = total.to(dtype).to(wide)
            return torch.div(wrapped, len(inputs), rounding_mode="trunc").to(dtype)
        return (total / len(inputs)).to(dtype)
    return (total * PREMUL_FACTOR if op.reduce == PREMUL else total).to(dtype)


def outputs(op: Op, me: int) -> list[Tensor | None]:
    """The flat content of each output of `me`; None: the output stays as it was."""
    everyone = range(op.group.size)

    def given(rank: int, index: int = 0) -> Tensor:
        return values.contribution(op, rank, index)

    def folded(index: int = 0) -> Tensor:
        return reduced(op, [given(rank, index) for rank in everyone])

    match op.kind:
        case "broadcast":
            return [given(op.root)]
        case "all_reduce":
            return [folded()]
        case "reduce":
            return [folded() if me == op.root else None]
        case "slices" | "all_reduce_coalesced" | "manager_all_reduce":
            return [folded(index) for index in range(len(op.counts))]
        case "all_gather":
            return [given(rank) for rank in everyone]
        case "gather":
            return [given(rank) for rank in everyone] if me == op.root else []
        case "all_gather_into_tensor" | "all_gather_into_tensor_coalesced" | "manager_all_gather":
            indices = range(len(op.counts))
            return [torch.cat([given(rank, index) for rank in everyone]) for index in indices]
        case "all_gather_coalesced":
            return [given(rank, index) for rank in everyone for index in range(len(op.counts))]
        case "scatter":
            return [given(op.root, me)]
        case "reduce_scatter":
            return [folded(me)]
        case "reduce_scatter_tensor" | "reduce_scatter_tensor_coalesced" | "manager_reduce_scatter":
            blocks = [slice(me * count, (me + 1) * count) for count in op.counts]
            return [
                reduced(op, [given(rank, index)[block] for rank in everyone])
                for index, block in enumerate(blocks)
            ]
        case "all_to_all":
            return [given(rank, me) for rank in everyone]
        case "all_to_all_single":
            pieces = [
                given(rank).split([n * op.width for n in op.matrix[rank]]) for rank in everyone
            ]
            return [torch.cat([piece[me] for piece in pieces])]
    return []


def sparse_sum(op: Op) -> Tensor:
    dense = [values.sparse(op, rank).to_dense() for rank in range(op.group.size)]
    return sum(dense[1:], dense[0])
