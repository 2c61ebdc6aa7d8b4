"""A trainer publishes its weights, and others read the newest whole version whenever they like.

    rdmarun -np 3 examples/09_weight_sync.py

Rank 0 trains and waits for nobody. The others work with what they have, and look for newer weights
between two batches: inference workers, rollout workers, evaluators. Nobody calls anybody, and no
reader sees half of an update.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn

from rdmacoll import remote

BATCH = 64


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))


def batch(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """What is learned: the sum of squares."""
    inputs = torch.rand(BATCH, 16, generator=generator)
    return inputs, inputs.square().sum(1, keepdim=True)


def train(net: nn.Module, steps: int) -> None:
    published = remote.publish(net.state_dict(), "weights")
    published.update()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        inputs, targets = batch(generator)
        loss = nn.functional.mse_loss(net(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        published.update()
    print(f"trained to version {published.version}, loss {loss.item():.4f}")


def evaluate(net: nn.Module, last: int) -> None:
    weights = remote.subscribe("weights", on=0)
    generator = torch.Generator().manual_seed(2)
    losses: list[float] = []
    version = 0
    while version < last:
        version = weights.load_into(net, newer=True)
        inputs, targets = batch(generator)
        with torch.no_grad():
            losses.append(nn.functional.mse_loss(net(inputs), targets).item())
    print(
        f"rank {dist.get_rank()} saw {len(losses)} versions up to {version}, loss {losses[0]:.2f} "
        f"to {losses[-1]:.4f}"
    )
    assert losses[-1] < losses[0] / 5, "it has not learned"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    dist.init_process_group(backend="rdma")
    net = model()
    if dist.get_rank() == 0:
        train(net, steps)
    else:
        evaluate(net, last=steps + 1)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
