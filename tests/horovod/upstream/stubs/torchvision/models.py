"""A small model under the name that Horovod's benchmarks ask for.

Floor: tests. Thread: any.
"""

from __future__ import annotations

import torch
from torch import nn

CLASSES = 1000
CHANNELS = 16
BLOCKS = 3


class _Block(nn.Module):
    """What it adds to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(CHANNELS)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = self.norm(self.conv(images))
        return torch.relu(images + added)


def resnet50() -> nn.Module:
    """Takes images of 3 channels and at least 8 pixels; neither 50 layers deep nor as slow."""
    return nn.Sequential(
        nn.Conv2d(3, CHANNELS, 8, stride=8, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
        *(_Block() for _ in range(BLOCKS)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(CHANNELS, CLASSES),
    )
