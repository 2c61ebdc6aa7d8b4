"""From an image of bytes to what a model takes.

Floor: tests. Thread: any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch


class Compose:
    """One after the other."""

    def __init__(self, transforms: Sequence[Callable[[torch.Tensor], torch.Tensor]]) -> None:
        self._transforms = transforms

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        for transform in self._transforms:
            image = transform(image)
        return image


class ToTensor:
    """Bytes of one channel become floats from 0 to 1."""

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image.unsqueeze(0).float() / 255


class Normalize:
    """By what each channel's mean and deviation are."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self._mean = torch.tensor(mean).reshape(-1, 1, 1)
        self._std = torch.tensor(std).reshape(-1, 1, 1)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return (image - self._mean) / self._std
