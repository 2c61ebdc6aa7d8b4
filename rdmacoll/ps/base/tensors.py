"""What tensors KV takes, and where servers find them, or write to.

Floor: rdmacoll/ps/base. Thread: any.
"""

from __future__ import annotations

import torch

from ...remote.memory.checks import check_tensor
from .optimizers import check_float32
from .staging import empty_pinned, is_staged, to_host


def check_shape(argument: str, tensor: torch.Tensor, shape: tuple[int, ...], name: str) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(
            f"{argument} has shape {tuple(tensor.shape)}; {name!r} takes {tuple(shape)} here"
        )


def check_range(argument: str, tensor: torch.Tensor, first: int, elements: int, name: str) -> None:
    if isinstance(first, bool) or not isinstance(first, int):
        raise TypeError(f"first is a {type(first).__name__}; give an integer")
    if tensor.dim() != 1 or not 0 <= first <= elements - len(tensor):
        raise ValueError(
            f"{argument} has shape {tuple(tensor.shape)}, and first={first}; give one dimension "
            f"that ends within the {elements} elements of {name!r}"
        )


def check_out(out: torch.Tensor, shape: tuple[int, ...], name: str) -> None:
    check_room(out)
    check_shape("out", out, shape, name)


def check_room(out: torch.Tensor) -> None:
    check_float32("out", out)
    if not is_staged(out):
        check_tensor("out", out)
    elif any(size > 1 and step == 0 for size, step in zip(out.shape, out.stride(), strict=True)):
        raise ValueError(
            f"out has shape {tuple(out.shape)} and strides {out.stride()}: some of its elements "
            "are one; give a tensor that is not expanded"
        )


def host_values(values: torch.Tensor) -> torch.Tensor:
    """What is sent to servers of these."""
    check_float32("values", values)
    host = to_host(values) if is_staged(values) else values
    check_tensor("values", host)
    return host


def host_room(out: torch.Tensor) -> torch.Tensor:
    """Where what servers send for it is written."""
    return empty_pinned(*out.shape) if is_staged(out) else out
