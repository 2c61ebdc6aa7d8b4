"""MNIST in name only: images of ten patterns, each shifted and under noise, alike on all ranks.

Floor: tests. Thread: any.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.data import Dataset

CLASSES = 10
SIDE = 28  # pixels
COARSE = 7  # a pattern is so many squares wide
MOST_SHIFTED = 2  # pixels
TRAIN, TEST = 2048, 512  # images


class MNIST(Dataset[tuple[torch.Tensor, int]]):
    """root, download: there is nothing to keep or to fetch."""

    def __init__(
        self,
        root: str,
        train: bool = True,
        transform: Callable[[torch.Tensor], torch.Tensor] | None = None,
        download: bool = False,
    ) -> None:
        self._transform = transform
        patterns = _patterns()
        drawn = torch.Generator().manual_seed(1 if train else 2)
        count = TRAIN if train else TEST
        self._labels = torch.randint(CLASSES, (count,), generator=drawn).tolist()
        shifts = torch.randint(-MOST_SHIFTED, MOST_SHIFTED + 1, (count, 2), generator=drawn)
        noise = torch.rand(count, SIDE, SIDE, generator=drawn)
        clean = torch.stack(
            [
                patterns[label].roll(shift, (0, 1))
                for label, shift in zip(self._labels, shifts.tolist(), strict=True)
            ]
        )
        self._images = (255 * (0.7 * clean + 0.3 * noise)).to(torch.uint8)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self._images[index]
        return image if self._transform is None else self._transform(image), self._labels[index]


def _patterns() -> torch.Tensor:
    """One for each class: the same to train and to test."""
    drawn = torch.Generator().manual_seed(0)
    coarse = (torch.rand(CLASSES, COARSE, COARSE, generator=drawn) > 0.5).float()
    wide = SIDE // COARSE
    return coarse.repeat_interleave(wide, 1).repeat_interleave(wide, 2)
