"""A rank is killed in the middle of training; rdmarun starts all again, which go on from what they
have saved.

    rdmarun -np 2 --max-restarts 1 examples/07_restart.py

For training whose ranks cannot do without each other (sharded weights, pipelines): rank 0 saves the
weights at the end of each epoch, the last rank kills itself in the first attempt. The status is not
0 if the training does not end with the accuracy that one without a loss has.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

EPOCHS, STEPS, DIES_IN, BATCH, GOAL = 6, 100, 3, 64, 0.95
SAVED = Path("out/07_restart.pt")


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images and labels to train with, and every fifth to test with."""
    source = load_digits()
    images = torch.tensor(source.data, dtype=torch.float32) / 16
    labels = torch.tensor(source.target)
    test = torch.arange(len(labels)) % 5 == 0
    return images[~test], labels[~test], images[test], labels[test]


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, epoch: int) -> None:
    generator = torch.Generator().manual_seed(epoch)
    for _ in range(STEPS):
        drawn = torch.randint(len(labels), (BATCH,), generator=generator)[rank::world]
        loss = cross_entropy(model(images[drawn]), labels[drawn])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def save(net: nn.Module, epochs: int) -> None:
    """Under another name first: who dies in the middle of it leaves the one before."""
    SAVED.parent.mkdir(exist_ok=True)
    unfinished = SAVED.with_suffix(".new")
    torch.save({"net": net.state_dict(), "epochs": epochs}, unfinished)
    unfinished.rename(SAVED)


attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group(backend="rdma")
rank, world = dist.get_rank(), dist.get_world_size()
images, labels, test_images, test_labels = digits()
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

begin = 0
if attempt > 0:
    saved = torch.load(SAVED)
    net.load_state_dict(saved["net"])
    begin = saved["epochs"]
print(f"rank {rank} of {world}: attempt {attempt} begins with epoch {begin}")

model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
for epoch in range(begin, EPOCHS):
    if attempt == 0 and epoch == DIES_IN and rank == world - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    train_epoch(model, optimizer, epoch)
    if rank == 0:
        save(net, epoch + 1)
    dist.barrier()  # nobody begins an epoch that another attempt would have to repeat

right = net(test_images).argmax(1) == test_labels
accuracy = right.float().mean().item()
print(f"rank {rank} of {world}: test accuracy {accuracy:.2%}")
assert accuracy >= GOAL, f"{accuracy:.2%} is less than {GOAL:.0%}"
dist.destroy_process_group()
