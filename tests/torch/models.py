"""A small model, data and a training loop for the tests of torch's own parallel layers.

Weights and data are the same on every rank of every world; a rank trains on its share.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

FEATURES, CLASSES, BATCH = 12, 5, 84  # the batch divides by 1, 2, 3, 4 and 7


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 33), nn.ReLU(), nn.Linear(33, 33), nn.ReLU())
        self.head = nn.Linear(33, CLASSES)
        self.sometimes = nn.Linear(33, CLASSES)

    def forward(self, features: Tensor, use_all: bool = True) -> Tensor:
        hidden = self.body(features)
        return self.head(hidden) + (self.sometimes(hidden) if use_all else 0)


def net() -> Net:
    torch.manual_seed(7)
    return Net().double()


def batch(step: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    features = torch.randn(BATCH, FEATURES, dtype=torch.float64, generator=generator)
    return features, torch.randint(CLASSES, (BATCH,), generator=generator)


def share(tensors: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    rank, world = dist.get_rank(), dist.get_world_size()
    features, labels = (t.chunk(world)[rank] for t in tensors)
    return features, labels


def train(
    model: nn.Module,
    steps: int = 4,
    *,
    whole_batch: bool = False,
    optimizer: torch.optim.Optimizer | None = None,
    forward: Callable[[Tensor], Tensor] | None = None,
) -> list[float]:
    """Returns the losses."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        features, labels = batch(step) if whole_batch else share(batch(step))
        loss = nn.functional.cross_entropy((forward or model)(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def serial(steps: int = 4) -> Net:
    """What one process makes of the whole batches."""
    model = net()
    train(model, steps, whole_batch=True)
    return model


def check_same(model: nn.Module, reference: nn.Module, tolerance: float = 1e-9) -> None:
    """Parameters close to the reference's, and the same bits on every rank."""
    for (name, own), other in zip(model.named_parameters(), reference.parameters(), strict=True):
        check_close(own, other, tolerance, name)
    check_equal_on_ranks(model)


def check_close(own: Tensor, other: Tensor, tolerance: float, name: str) -> None:
    error = (own - other).abs().max().item()
    assert error <= tolerance, f"{name} differs by {error}"


def check_equal_on_ranks(model: nn.Module) -> None:
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyone = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, flat)
    for rank, other in enumerate(everyone):
        assert torch.equal(flat, other), f"parameters differ from rank {rank}'s"
