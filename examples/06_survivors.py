"""A rank is killed in the middle of training; the others go on without it, in the same processes.

    rdmarun -np 3 --min-np 2 examples/06_survivors.py

The last rank kills itself. --min-np lets the others live: they learn from the error who is gone,
make a smaller group of themselves over the links they have, agree on the weights and train on. The
status is not 0 if they do not end with the accuracy that a training without a loss has.
"""

from __future__ import annotations

import os
import signal

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import rdmacoll

STEPS, DIES_AT, BATCH, GOAL = 600, 200, 64, 0.95


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images and labels to train with, and every fifth to test with."""
    source = load_digits()
    images = torch.tensor(source.data, dtype=torch.float32) / 16
    labels = torch.tensor(source.target)
    test = torch.arange(len(labels)) % 5 == 0
    return images[~test], labels[~test], images[test], labels[test]


def train(net: nn.Module, begin: int, dies: bool) -> None:
    """To the last step. A step's images are split over the ranks that there are."""
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    for step in range(begin, STEPS):
        drawn = torch.randint(len(labels), (BATCH,), generator=torch.Generator().manual_seed(step))
        mine = drawn[dist.get_rank() :: dist.get_world_size()]
        loss = cross_entropy(model(images[mine]), labels[mine])
        optimizer.zero_grad()
        if dies and step == DIES_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
        progress[0] = step + 1


def agree_on_weights(net: nn.Module) -> int:
    """All go on from where rank 0 is: one may have ended a step that another has not."""
    weights = parameters_to_vector(net.parameters()).detach()
    dist.broadcast(weights, 0)
    dist.broadcast(progress, 0)
    vector_to_parameters(weights, net.parameters())
    return int(progress.item())


def check_identical(net: nn.Module) -> None:
    weights = parameters_to_vector(net.parameters()).detach()
    largest, smallest = weights.clone(), weights.clone()
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    dist.all_reduce(smallest, op=dist.ReduceOp.MIN)
    assert torch.equal(largest, smallest), "the ranks hold different weights"


dist.init_process_group(backend="rdma")
rank, world = dist.get_rank(), dist.get_world_size()
images, labels, test_images, test_labels = digits()
progress = torch.zeros(1, dtype=torch.int64)
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

try:
    train(net, 0, dies=rank == world - 1)
    raise SystemExit("nobody died")
except RuntimeError:
    # DDP passes errors on as plain ones; others are rdmacoll.DeadRankError and carry the ranks.
    dead = rdmacoll.dead_ranks()
print(f"rank {rank} of {world}: ranks {dead} are gone, after {progress.item()} steps")
assert dead == (world - 1,)

rdmacoll.shrink_group()
begin = agree_on_weights(net)
train(net, begin, dies=False)

check_identical(net)
right = net(test_images).argmax(1) == test_labels
accuracy = right.float().mean().item()
rank, world = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {world}: trained on from step {begin}, test accuracy {accuracy:.2%}")
assert accuracy >= GOAL, f"{accuracy:.2%} is less than {GOAL:.0%}"
dist.destroy_process_group()
