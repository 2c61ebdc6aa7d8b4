"""What the arguments of remote memory must be. Each names the argument, its value and a remedy."""

from __future__ import annotations

import math

import torch

ACCESS = ("r", "rw")


def check_access(access: str) -> None:
    if access not in ACCESS:
        raise ValueError(f'access={access!r}; give "r" (others read) or "rw" (and write)')


def check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name is a {type(name).__name__}; give a string")


def check_timeout(timeout: float) -> None:
    if not isinstance(timeout, int | float) or isinstance(timeout, bool):
        raise TypeError(f"timeout is a {type(timeout).__name__}; give seconds")
    if math.isnan(timeout) or timeout < 0:
        raise ValueError(f"timeout={timeout}; give 0 seconds or more")


def check_tensor(argument: str, tensor: torch.Tensor) -> None:
    """A dense tensor on the CPU, whose elements lie one behind the other."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{argument} is a {type(tensor).__name__}; give a tensor")
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        raise ValueError(
            f"{argument} is {tensor.layout} on {tensor.device}; remote memory takes strided "
            "tensors on the CPU: copy it there first"
        )
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError(
            f"{argument} is a view that torch conjugates or negates when it is read, which its "
            "memory does not show; call resolve_conj().resolve_neg() first"
        )
    if not tensor.is_contiguous():
        raise ValueError(
            f"{argument} has shape {tuple(tensor.shape)} and strides {tensor.stride()}, which are "
            "not contiguous; give a slice of rows, or call contiguous() first"
        )


def as_indices(argument: str, given: torch.Tensor | list[int]) -> torch.Tensor:
    """Integers as a dense int64 tensor of one dimension."""
    try:
        numbers = torch.as_tensor(given).flatten()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{argument} make no tensor of int64: {error}; give integers") from None
    is_integer = numbers.dtype is not torch.bool and not (
        numbers.dtype.is_floating_point or numbers.dtype.is_complex
    )
    if len(numbers) > 0 and not is_integer:  # an empty list has torch's default dtype
        raise TypeError(f"{argument} has dtype {numbers.dtype}; give integers")
    return numbers.to(torch.int64).contiguous()
