"""The kind of a tensor, dtype and shape, as the owner tells it to who opens it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from .errors import PeerError

MOST_DIMENSIONS = 64
MOST_BYTES = 1 << 56  # as remote_opened.cc takes them


@dataclass(frozen=True)
class Kind:
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Of one index of the first dimension."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def encode(self) -> str:
        return json.dumps([str(self.dtype).removeprefix("torch."), list(self.shape)])


def kind_of(tensor: torch.Tensor) -> Kind:
    return Kind(tensor.dtype, tuple(tensor.shape))


def kind_to_make(size: tuple[int | tuple[int, ...], ...], dtype: torch.dtype | None) -> Kind:
    """As the arguments of an empty() say. Raises TypeError or ValueError for what no tensor has."""
    sizes = [n for part in size for n in (part if isinstance(part, tuple | list) else (part,))]
    for n in sizes:
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"size={tuple(sizes)} has a {type(n).__name__}; give integers")
    if any(n < 0 for n in sizes):
        raise ValueError(f"size={tuple(sizes)} has a negative dimension; give 0 or more of each")
    kind = Kind(dtype or torch.get_default_dtype(), tuple(sizes))
    if kind.bytes > MOST_BYTES:
        raise ValueError(f"size={kind.shape} takes {kind.bytes} bytes; {MOST_BYTES} is the most")
    return kind


def decode(text: bytes, holds_bytes: int | None, who: str) -> Kind:
    """PeerError for what encode() has not made. It comes from another process.

    holds_bytes: what it must have; None: anything.
    """
    try:
        name, shape = json.loads(text)
        dtype = getattr(torch, name)
        right = (
            isinstance(dtype, torch.dtype)
            and len(shape) <= MOST_DIMENSIONS
            and all(type(n) is int and n >= 0 for n in shape)
        )
    except (ValueError, TypeError, AttributeError):
        right = False
    if not right or holds_bytes not in (None, Kind(dtype, tuple(shape)).bytes):
        raise PeerError(f"{who} says of what it exposes what makes no sense: {text[:80]!r}")
    return Kind(dtype, tuple(shape))


def encode_kinds(kinds: Mapping[str, Kind]) -> bytes:
    return json.dumps([[name, kind.encode()] for name, kind in kinds.items()]).encode()


def decode_kinds(text: bytes, who: str) -> dict[str, Kind]:
    """PeerError for what encode_kinds() has not made. It comes from another process."""
    try:
        pairs = [(str(name), str(kind)) for name, kind in json.loads(text)]
    except (ValueError, TypeError, RecursionError):
        raise PeerError(f"{who} tells of tensors what makes no sense") from None
    return {name: decode(kind.encode(), None, who) for name, kind in pairs}
