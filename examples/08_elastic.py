"""A rank is killed in the middle of training; the others go on, without it until it is back.

    rdmarun -np 3 --min-np 2 --max-restarts 1 --elastic examples/08_elastic.py

The last rank kills itself. The others go on from the last commit, and rdmarun starts it again,
alone: it gets the state from them and trains on with them. The status is not 0 if there were not 3
ranks, then 2, then 3, or if they do not end with the accuracy of a training without a loss.
"""

from __future__ import annotations

import os
import signal
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from rdmacoll import elastic

STEPS, DIES_AT, WAITS_AT, BATCH, GOAL = 600, 200, 400, 64, 0.95
WAITS_S = 120
WORLD = int(os.environ["WORLD_SIZE"])
IS_BACK = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) > 0


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images and labels to train with, and every fifth to test with."""
    source = load_digits()
    images = torch.tensor(source.data, dtype=torch.float32) / 16
    labels = torch.tensor(source.target)
    test = torch.arange(len(labels)) % 5 == 0
    return images[~test], labels[~test], images[test], labels[test]


def train(state: elastic.State) -> None:
    """From the state's step to the last. A step's images are split over the ranks there are."""
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world}: goes on from step {state.step}")
    state.worlds = [*state.worlds, world]
    model = DistributedDataParallel(state.net)
    for step in range(state.step, STEPS):
        if step == WAITS_AT:
            wait_for_all(state)
        drawn = torch.randint(len(labels), (BATCH,), generator=torch.Generator().manual_seed(step))
        mine = drawn[rank::world]
        loss = cross_entropy(model(images[mine]), labels[mine])
        state.optimizer.zero_grad()
        if step == DIES_AT and rank == WORLD - 1 and not IS_BACK:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        state.optimizer.step()
        state.step = step + 1
        state.commit()


def wait_for_all(state: elastic.State) -> None:
    """These steps are so quick that all would be done before Python has started again."""
    for _ in range(WAITS_S * 10):
        if dist.get_world_size() == WORLD:
            return
        state.commit()  # which leaves train() when there is somebody to let in
        time.sleep(0.1)
    raise SystemExit(f"the lost rank is not back after {WAITS_S} s")


def check_identical(net: nn.Module) -> None:
    for weights in net.parameters():
        largest, smallest = weights.detach().clone(), weights.detach().clone()
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        dist.all_reduce(smallest, op=dist.ReduceOp.MIN)
        assert torch.equal(largest, smallest), "the ranks hold different weights"


images, labels, test_images, test_labels = digits()
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.5)
state = elastic.State(net=net, optimizer=optimizer, step=0, worlds=[])
elastic.run(train, state)

check_identical(net)
right = net(test_images).argmax(1) == test_labels
accuracy = right.float().mean().item()
print(f"rank {dist.get_rank()}: the groups had {state.worlds} ranks, test accuracy {accuracy:.2%}")
assert state.worlds == [WORLD, WORLD - 1, WORLD], state.worlds
assert accuracy >= GOAL, f"{accuracy:.2%} is less than {GOAL:.0%}"
dist.destroy_process_group()
