"""A recommender: rows of users and items lie at servers, dense layers are trained by DDP.

    rdmarun -np 2 --servers 2 --server-restarts 1 examples/11_recommender.py

A table of rows may be larger than a worker's memory: each batch pulls the rows that it needs, and
its backward pushes their gradients. On the way rank 0 kills one of the servers. Each bucket of rows
has a second server, which takes over, so the training goes on and no gradient is lost.
"""

import argparse

import torch
import torch.distributed as dist
from kill_a_server import kill_a_server
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from rdmacoll import ps

USERS, ITEMS, DIM, BATCH = 400, 100, 8, 256


class Recommender(nn.Module):
    """How much a user likes an item."""

    def __init__(self) -> None:
        super().__init__()
        adagrad, initial = ps.RowwiseAdagrad(lr=0.2), ps.Uniform(-0.5, 0.5, seed=1)
        self.users = ps.Embedding("users", DIM, optimizer=adagrad, initial=initial)
        self.items = ps.Embedding("items", DIM, optimizer=adagrad, initial=initial)
        self.dense = nn.Sequential(nn.Linear(2 * DIM, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.dense(torch.cat([self.users(users), self.items(items)], 1))
        return logits.flatten()


def likes(users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
    """What is learned: a user likes the items of his kind."""
    return (users % 4 == items % 4).float()


def accuracy(model: nn.Module) -> float:
    pairs = torch.cartesian_prod(torch.arange(USERS), torch.arange(ITEMS))
    with torch.no_grad():
        said = model(pairs[:, 0], pairs[:, 1]) > 0
    return (said == (likes(pairs[:, 0], pairs[:, 1]) > 0)).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--goal", type=float, default=0.9, help="accuracy to exceed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    dist.init_process_group("rdma")
    rank = dist.get_rank()
    model = DistributedDataParallel(Recommender())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  # of the dense layers
    generator = torch.Generator().manual_seed(rank)
    for step in range(options.steps):
        if rank == 0 and step == options.steps // 2:
            print(f"step {step}: {kill_a_server()}")
        users = torch.randint(USERS, (BATCH,), generator=generator)
        items = torch.randint(ITEMS, (BATCH,), generator=generator)
        logits = model(users, items)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, likes(users, items))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    model.module.users.wait()
    model.module.items.wait()
    dist.barrier()
    found = accuracy(model.module)
    print(f"rank {rank} finds {found:.2%} of what users like")
    if found <= options.goal:
        raise SystemExit(f"that is not above {options.goal:.0%}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
