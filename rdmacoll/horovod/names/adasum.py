"""Adasum: gradients added so that what they have in common counts once.

    a + b  ->  (1 - a.b / 2|a|^2) a  +  (1 - a.b / 2|b|^2) b

in pairs, then pairs of pairs, up to all ranks, whose number is a power of two. (Maleki et al.,
"Scaling Distributed Training with Adaptive Summation", 2020.) Every rank gathers the tensors of all
and adds them in the same order, so all have the same bits: n - 1 times a tensor comes to each.
Floor: rdmacoll/horovod/names. Thread: any.
"""

from typing import TYPE_CHECKING, Any

import torch

from .handles import Result
from .process_sets import ProcessSet

if TYPE_CHECKING:
    from .native import NamedWork


def add(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Of two tensors of one shape and dtype; products are summed as doubles."""
    a, b = one.double().flatten(), other.double().flatten()
    dot, of_a, of_b = a.dot(b), a.dot(a), b.dot(b)
    share_of_a = 1 - dot / (2 * of_a) if of_a > 0 else 1.0
    share_of_b = 1 - dot / (2 * of_b) if of_b > 0 else 1.0
    return (share_of_a * a + share_of_b * b).to(one.dtype).reshape(one.shape)


def add_all(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Neighbours first."""
    while len(tensors) > 1:
        tensors = [add(*tensors[i : i + 2]) for i in range(0, len(tensors), 2)]
    return tensors[0]


def check(process_set: ProcessSet, tensors: list[torch.Tensor]) -> None:
    ranks = process_set.size()
    if ranks & (ranks - 1):
        raise NotImplementedError(
            f"op=hvd.Adasum over {ranks} ranks; their number must be a power of two"
        )
    for tensor in tensors:
        if not tensor.is_floating_point():
            raise ValueError(f"op=hvd.Adasum of {tensor.dtype}; give floating-point tensors")


def start(
    outputs: list[torch.Tensor],
    name: str | None,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
    result: Result,
) -> int:
    """In place; each tensor by itself."""
    from .operations import submit

    check(process_set, outputs)
    ranks = process_set.size()

    def combine(work: "NamedWork") -> Any:
        for output, gathered in zip(outputs, work.outputs(), strict=True):
            output.copy_(add_all(list(gathered.reshape(ranks, *output.shape))).mul(postscale))
        return result(work)

    return submit(
        "AllGather",
        None if name is None else f"{name}.adasum",
        process_set,
        [tensor.mul(prescale).unsqueeze(0) for tensor in outputs],
        result=combine,
    )
