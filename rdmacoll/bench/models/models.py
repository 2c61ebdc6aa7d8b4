"""What is trained: four models whose steps move ever fewer bytes for what they compute.

They are small relatives of those in the paper, so that a step of one core takes some 5 to 200 ms.
None has random parts or statistics of its own: a step is a function of parameters and batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

CLASSES = 100


@dataclass(frozen=True)
class Model:
    make: Callable[[], nn.Module]
    input_shape: tuple[int, ...]  # of one sample
    samples: int  # of a batch


def fcn_5() -> nn.Module:
    """Five fully connected layers: all parameters, and each is used once for a sample."""
    width = 1536
    layers: list[nn.Module] = []
    for _ in range(4):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, CLASSES))


def vgg_head() -> nn.Module:
    """VGG's three linear layers, where most of its parameters are, behind few convolutions."""
    layers: list[nn.Module] = []
    for entering, leaving in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(entering, leaving, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(128 * 4 * 4, 2048), nn.ReLU()]
    layers += [nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, CLASSES)]
    return nn.Sequential(*layers)


class Lstm(nn.Module):
    """Two layers, whose parameters are used once for each element of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(256, 512, num_layers=2, batch_first=True)
        self.last = nn.Linear(512, CLASSES)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        every, _ = self.lstm(batch)
        return self.last(every[:, -1])


class Mixed(nn.Module):
    """A module of Inception: convolutions of three sizes and a pooling, side by side."""

    def __init__(self, entering: int, leaving: int) -> None:
        super().__init__()
        part = leaving // 4
        half = part // 2
        self.one = _convolution(entering, part, 1)
        self.three = nn.Sequential(_convolution(entering, half, 1), _convolution(half, part, 3))
        self.five = nn.Sequential(_convolution(entering, half, 1), _convolution(half, part, 5))
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), _convolution(entering, part, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        branches = (self.one, self.three, self.five, self.pooled)
        return torch.cat([branch(images) for branch in branches], dim=1)


def inception() -> nn.Module:
    return nn.Sequential(
        _convolution(3, 32, 3),
        Mixed(32, 64),
        Mixed(64, 128),
        nn.MaxPool2d(2),
        Mixed(128, 256),
        Mixed(256, 256),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, CLASSES),
    )


def _convolution(entering: int, leaving: int, size: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(entering, leaving, size, padding=size // 2), nn.ReLU())


MODELS = {
    "fcn-5": Model(fcn_5, (1536,), samples=8),
    "vgg-head": Model(vgg_head, (3, 32, 32), samples=8),
    "lstm": Model(Lstm, (20, 256), samples=8),
    "inception": Model(inception, (3, 32, 32), samples=8),
}
