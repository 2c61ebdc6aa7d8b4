"""Where tensors lie in bytes, one behind the other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

import torch

from .kind import Kind

ALIGNMENT = 64  # of each tensor among the others


Key = TypeVar("Key", bound=Hashable)


class Layout(Generic[Key]):
    """Both sides compute it from the same kinds, in the same order."""

    def __init__(self, kinds: Mapping[Key, Kind]) -> None:
        self.kinds = dict(kinds)
        self.offsets: dict[Key, int] = {}
        self.bytes = 0
        for key, kind in self.kinds.items():
            self.offsets[key] = self.bytes
            self.bytes += padded(kind.bytes)

    def view(self, memory: torch.Tensor, key: Key) -> torch.Tensor:
        kind, offset = self.kinds[key], self.offsets[key]
        return memory[offset : offset + kind.bytes].view(kind.dtype).view(kind.shape)


def padded(bytes: int) -> int:
    """With what is free behind them, up to the next tensor."""
    return -(-bytes // ALIGNMENT) * ALIGNMENT
