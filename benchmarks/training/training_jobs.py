"""What run.py trains: models with their data, in DDP and FSDP2, on a group of any backend."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

EXAMPLES = Path(__file__).parents[2] / "examples"
SEED = 1
BATCHES = 8  # made beforehand, and used again and again
VOCABULARY, LENGTH, DIMENSIONS, HEADS, LAYERS = 256, 64, 256, 4, 4  # of the transformer

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Workload:
    name: str
    net: Callable[[], nn.Module]  # a sequence of blocks, which FSDP2 shards each by itself
    batches: Callable[[int], list[Batch]]  # of one rank
    batch_size: int  # of one rank


@dataclass(frozen=True)
class System:
    name: str
    group: dist.ProcessGroup | None  # None: every rank trains alone
    memory: Callable[[], AbstractContextManager[None]]  # what holds during its turns


class Trainer:
    """One model on one system."""

    def __init__(self, workload: Workload, parallelism: str, system: System) -> None:
        self._system = system
        torch.manual_seed(SEED)
        self._batches = workload.batches(dist.get_rank())
        with system.memory():
            self._model = PARALLELISMS[parallelism](workload.net(), system.group)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)
        self.losses: list[float] = []

    def turn_s(self, steps: int) -> float:
        """The seconds that so many steps take."""
        with self._system.memory():
            began = time.perf_counter()
            for _ in range(steps):
                self._step()
            return time.perf_counter() - began

    def _step(self) -> None:
        inputs, targets = self._batches[len(self.losses) % BATCHES]
        loss = cross_entropy(self._model(inputs).flatten(0, -2), targets.flatten())
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self.losses.append(loss.item())


def _ddp(model: nn.Module, group: dist.ProcessGroup | None) -> nn.Module:
    if group is None:
        return model
    return DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True)


def _fsdp2(model: nn.Module, group: dist.ProcessGroup | None) -> nn.Module:
    if group is None:
        return model
    mesh = DeviceMesh.from_group(group, "cpu")
    for block in model.children():
        if any(True for _ in block.parameters()):
            fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


PARALLELISMS = {"DDP": _ddp, "FSDP2": _fsdp2}


class Embedding(nn.Module):
    """Of tokens and of where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, DIMENSIONS)
        self.places = nn.Parameter(torch.zeros(LENGTH, DIMENSIONS))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.tokens(tokens) + self.places


def transformer() -> nn.Module:
    layers = [
        nn.TransformerEncoderLayer(
            DIMENSIONS, HEADS, 4 * DIMENSIONS, dropout=0, batch_first=True, norm_first=True
        )
        for _ in range(LAYERS)
    ]
    return nn.Sequential(Embedding(), *layers, nn.Linear(DIMENSIONS, VOCABULARY))


def digits(batch_size: int) -> Workload:
    """The main job's."""
    sys.path.append(str(EXAMPLES))
    example = importlib.import_module("01_train_digits")

    def batches(rank: int) -> list[Batch]:
        data, _ = example.digits()
        first = rank * BATCHES * batch_size
        mine = torch.arange(first, first + BATCHES * batch_size) % len(data)
        return [data[some] for some in mine.split(batch_size)]

    return Workload("digits", example.net, batches, batch_size)


def made_up(
    name: str, net: Callable[[], nn.Module], batch_size: int, make: Callable[[int], Batch]
) -> Workload:
    """With data of random numbers, other ones on every rank."""

    def batches(rank: int) -> list[Batch]:
        torch.manual_seed(SEED + rank)
        return [make(batch_size) for _ in range(BATCHES)]

    return Workload(name, net, batches, batch_size)


def _tokens(count: int) -> Batch:
    """The next token is to be told from each."""
    tokens = (torch.randint(VOCABULARY, (count, 1)) + torch.arange(LENGTH + 1) * 7) % VOCABULARY
    return tokens[:, :-1], tokens[:, 1:]


def perceptron(name: str, width: int, depth: int) -> Workload:
    """Bound by communication: many gradients for one sample."""

    def net() -> nn.Module:
        layers = [nn.Linear(width, width) for _ in range(depth)]
        return nn.Sequential(*(module for layer in layers for module in (layer, nn.ReLU())))

    return made_up(
        name, net, 1, lambda count: (torch.randn(count, width), torch.randint(width, (count,)))
    )


def recommender() -> Workload:
    """Bound by communication, too: a table of 32 MiB, of which a sample needs a few rows."""
    rows, dimensions, classes, bag = 1 << 17, 64, 16, 32

    def net() -> nn.Module:
        return nn.Sequential(
            nn.EmbeddingBag(rows, dimensions), nn.ReLU(), nn.Linear(dimensions, classes)
        )

    def make(count: int) -> Batch:
        return torch.randint(rows, (count, bag)), torch.randint(classes, (count,))

    return made_up("recommender", net, 16, make)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "digits": lambda: digits(32),
    "transformer": lambda: made_up("transformer", transformer, 8, _tokens),
    "recommender": recommender,
    "mlp-4M": lambda: perceptron("mlp-4M", 512, 4),  # MiB of gradients
    "mlp-32M": lambda: perceptron("mlp-32M", 1024, 8),
}
