"""Trains a small convolutional net on handwritten digits with DistributedDataParallel.

    rdmarun -np 2 examples/01_train_digits.py
    torchrun --nproc-per-node 2 examples/01_train_digits.py --backend gloo

Afterwards it checks that all ranks hold identical parameters, trains once more on gloo from the
same seed and compares, and saves out/01_train_digits.png. The status is not 0 if a check fails.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from rich.progress import track
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset
from torch.utils.data.distributed import DistributedSampler

SEED, BATCH, TEST_SHARE = 1, 64, 5  # every fifth image is for the test
SAME_LOSSES = 20  # with more than two ranks the order of additions may differ from gloo's


@dataclass
class Run:
    backend: str
    model: nn.Module
    steps: list[float] = field(default_factory=list)  # this rank's loss at every step
    losses: list[float] = field(default_factory=list)  # of all ranks, by epoch
    accuracies: list[float] = field(default_factory=list)


def digits() -> tuple[TensorDataset, TensorDataset]:
    source = load_digits()
    images = torch.tensor(source.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(source.target)
    test = torch.arange(len(labels)) % TEST_SHARE == 0
    return TensorDataset(images[~test], labels[~test]), TensorDataset(images[test], labels[test])


def net() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10)),
    )


def mean_over_ranks(numerator: float, denominator: float, group: dist.ProcessGroup) -> float:
    total = torch.tensor([numerator, denominator], dtype=torch.float64)
    dist.all_reduce(total, group=group)
    return (total[0] / total[1]).item()


def accuracy(model: nn.Module, data: TensorDataset, group: dist.ProcessGroup) -> float:
    images, labels = (t[dist.get_rank() :: dist.get_world_size()] for t in data.tensors)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum().item()
    return mean_over_ranks(right, len(labels), group)


def train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor
) -> list[float]:
    """The loss of every step."""
    losses = []
    batch = BATCH // dist.get_world_size()
    for some_images, some_labels in zip(images.split(batch), labels.split(batch), strict=True):
        loss = cross_entropy(model(some_images), some_labels)
        optimizer.zero_grad()
        loss.backward()  # the gradients are averaged over the ranks meanwhile
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(backend: str, group: dist.ProcessGroup, epochs: int, console: Console) -> Run:
    train_data, test_data = digits()
    model = DistributedDataParallel(net(), process_group=group)
    # Not Adam: it turns a rounding difference in a gradient near zero into one of a whole step.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    sampler: DistributedSampler[Any] = DistributedSampler(train_data, seed=SEED)
    run = Run(backend, model.module)
    show = track(range(epochs), f"training on {backend}", console=console)
    for epoch in show if dist.get_rank() == 0 else range(epochs):
        sampler.set_epoch(epoch)
        steps = train_epoch(model, optimizer, *train_data[list(sampler)])
        schedule.step()
        run.steps += steps
        run.losses.append(mean_over_ranks(sum(steps), len(steps), group))
        run.accuracies.append(accuracy(model.module, test_data, group))
        console.print(
            f"epoch {epoch + 1:2}  loss {run.losses[-1]:.4f}  "
            f"test accuracy {run.accuracies[-1]:.2%}"
        )
    return run


def digest(model: nn.Module) -> str:
    sha = hashlib.sha256()
    for parameter in model.parameters():
        sha.update(parameter.detach().numpy().tobytes())
    return sha.hexdigest()


def check_identical(run: Run, group: dist.ProcessGroup) -> str:
    digests: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(digests, digest(run.model), group=group)
    if len(set(digests)) != 1:
        raise SystemExit(f"the ranks' parameters differ: {digests}")
    return f"all {len(digests)} ranks hold the same parameters, sha256 {digests[0][:16]}"


def compare(run: Run, other: Run) -> str:
    if dist.get_world_size() <= 2:
        if (run.steps, digest(run.model)) != (other.steps, digest(other.model)):
            raise SystemExit(f"{run.backend} and {other.backend} trained different parameters")
        return f"every loss and every parameter equals {other.backend}'s bit for bit"
    pairs = zip(run.steps[:SAME_LOSSES], other.steps[:SAME_LOSSES], strict=True)
    worst = max(abs(a - b) for a, b in pairs)
    if worst > 1e-5:
        raise SystemExit(f"the first losses differ from {other.backend}'s by up to {worst}")
    if abs(run.accuracies[-1] - other.accuracies[-1]) > 0.01:
        raise SystemExit(f"accuracies: {run.accuracies[-1]}, {other.accuracies[-1]}")
    return f"the first {SAME_LOSSES} losses equal {other.backend}'s to {worst:.0e}"


def draw(run: Run, path: Path) -> None:
    from matplotlib.figure import Figure  # takes long the first time, and one rank draws

    figure = Figure(figsize=(7, 4))
    left = figure.subplots()
    epochs = range(1, len(run.losses) + 1)
    left.semilogy(epochs, run.losses, "o-", color="tab:blue")
    left.set(xlabel="epoch", ylabel="training loss", title=f"digits, {dist.get_world_size()} ranks")
    right = left.twinx()
    right.plot(epochs, [100 * a for a in run.accuracies], "s-", color="tab:orange")
    right.set_ylabel("test accuracy, %")
    path.parent.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--backend", default="rdma")
    parser.add_argument("--compare", default="gloo", help="a second backend, or none")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--goal", type=float, default=0.97, help="test accuracy to exceed")
    parser.add_argument("--no-figure", action="store_true", help="draw none")
    options = parser.parse_args()
    torch.set_num_threads(1)

    dist.init_process_group(options.backend)
    console = Console(quiet=dist.get_rank() != 0, highlight=False)
    world = dist.group.WORLD
    assert world is not None
    began = time.perf_counter()
    run = train(options.backend, world, options.epochs, console)
    console.print(f"trained in {time.perf_counter() - began:.1f} s")
    console.print(check_identical(run, world))
    if options.compare not in ("none", options.backend):
        other = dist.new_group(backend=options.compare)
        console.print(compare(run, train(options.compare, other, options.epochs, console)))
    if dist.get_rank() == 0 and not options.no_figure:
        path = Path("out", f"{Path(__file__).stem}.png")
        draw(run, path)
        console.print(f"see {path}")
    if run.accuracies[-1] <= options.goal:
        raise SystemExit(f"test accuracy {run.accuracies[-1]:.2%} is not above {options.goal:.0%}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
