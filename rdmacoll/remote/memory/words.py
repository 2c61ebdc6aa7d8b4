"""Words that many processes update: which elements are some, and which integers fit into them."""

from __future__ import annotations

import math

import torch

from .kind import Kind

WORD_DTYPES = (torch.int64, torch.uint64)
WORD_BITS = 64


def check_word(kind: Kind, name: str) -> None:
    """One element, of which eight bytes are all."""
    if kind.dtype not in WORD_DTYPES:
        raise TypeError(
            f"{name!r} has dtype {kind.dtype}; atomics take torch.int64 and torch.uint64"
        )
    if math.prod(kind.shape) != 1:
        raise ValueError(
            f"a part of {name!r} with shape {kind.shape} is not one element; index it down to one"
        )


def to_word(argument: str, value: int, dtype: torch.dtype) -> int:
    """Its bits, as a number without a sign."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{argument} is a {type(value).__name__}; give an integer")
    limits = torch.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise ValueError(
            f"{argument}={value} does not fit into {dtype}; give {limits.min} to {limits.max}"
        )
    return value % (1 << WORD_BITS)


def from_word(bits: int, dtype: torch.dtype) -> int:
    return bits - (1 << WORD_BITS) if bits > torch.iinfo(dtype).max else bits
