"""A rank vanishes in the middle of training; the others go on without it, in the same processes.

    rdmarun -np 2 examples/06_survivors.py
    rdmarun -np 4 examples/06_survivors.py

The last rank ends without a word. The others learn from the error who is gone, make a smaller
group of themselves over the links they have, agree on the weights and train on. It ends with status
0, as rdmarun, like torchrun, ends the whole job when a rank fails: for real deaths let something
supervise the ranks that lets the others live.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import rdmacoll

STEPS, VANISHES_AT, WIDTH = 20, 7, 64


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's share of a step's data: what is learnt is the sum of the features."""
    generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    features = torch.randn(32, WIDTH, generator=generator)
    return features, features.sum(1, keepdim=True)


def train(net: nn.Module, begin: int, vanishes: bool) -> float:
    """To the last step; the loss there."""
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = torch.zeros(())
    for step in range(begin, STEPS):
        features, targets = batch(step)
        loss = nn.functional.mse_loss(model(features), targets)
        optimizer.zero_grad()
        if vanishes and step == VANISHES_AT:
            os._exit(0)
        loss.backward()
        optimizer.step()
        progress[0] = step + 1
    return loss.item()


def agree_on_weights(net: nn.Module) -> int:
    """All go on from where rank 0 is: one may have ended a step that another has not."""
    weights = parameters_to_vector(net.parameters()).detach()
    dist.broadcast(weights, 0)
    dist.broadcast(progress, 0)
    vector_to_parameters(weights, net.parameters())
    return int(progress.item())


dist.init_process_group(backend="rdma")
rank, world = dist.get_rank(), dist.get_world_size()
progress = torch.zeros(1, dtype=torch.int64)
torch.manual_seed(1)
net = nn.Linear(WIDTH, 1)

try:
    train(net, 0, vanishes=rank == world - 1)
    raise SystemExit("nobody vanished")
except RuntimeError:
    # DDP passes errors on as plain ones; others are rdmacoll.DeadRankError and carry the ranks.
    dead = rdmacoll.dead_ranks()
print(f"rank {rank} of {world}: ranks {dead} are gone, after {progress.item()} steps")
assert dead == (world - 1,)

rdmacoll.shrink_group()
begin = agree_on_weights(net)
loss = train(net, begin, vanishes=False)

weights = parameters_to_vector(net.parameters()).detach()
largest, smallest = weights.clone(), weights.clone()
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
dist.all_reduce(smallest, op=dist.ReduceOp.MIN)
assert torch.equal(largest, smallest), "the ranks hold different weights"
rank, world = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {world}: trained on from step {begin}, loss {loss:.3f}")
dist.destroy_process_group()
