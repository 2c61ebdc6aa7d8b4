"""Handwritten digits, learned in each mode by as many workers as the job has.

Whatever the mode and however many workers, the images are seen EPOCHS times in all: each worker
has its share of them, and goes through it so often. So with four workers that step together there
is a quarter of the steps. The images are in a file, as test_convergence.py says: scikit-learn takes
seconds of a core to be imported.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional

from rdmacoll import ps

FILE = "digits.pt"  # in the job's folder: images of 64 floats from 0 to 1, labels
EPOCHS, BATCH, TEST_SHARE = 12, 32, 5  # every fifth image is for the test
RATE = 1e-2  # of Adam
GOAL = 0.93  # in each mode, one to four workers came to 0.955 and more


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def accuracy_in(mode: ps.Async | ps.Stale | ps.Sync, name: str) -> float:
    rank, workers = dist.get_rank(), dist.get_world_size()
    images, labels = torch.load(FILE)
    is_test = torch.arange(len(labels)) % TEST_SHARE == 0
    known = (~is_test).nonzero().flatten()
    mine = known[rank::workers][: len(known) // workers]  # as many steps for all

    model = net()
    optimizer = ps.Optimizer(model.parameters(), optim.Adam, mode, name, lr=RATE)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(EPOCHS):
        for batch in mine[torch.randperm(len(mine), generator=generator)].split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    if isinstance(mode, ps.Async):
        dist.barrier()  # all have pushed
        optimizer.zero_grad()
        optimizer.step()  # pulls what the others have made since
    with torch.no_grad():
        right = model(images[is_test]).argmax(1) == labels[is_test]
    return right.float().mean().item()


def case_sync(_kv: ps.KV) -> None:
    found = accuracy_in(ps.Sync(), "sync")
    assert found >= GOAL, found


def case_stale(_kv: ps.KV) -> None:
    found = accuracy_in(ps.Stale(2), "stale")
    assert found >= GOAL, found


def case_async(_kv: ps.KV) -> None:
    found = accuracy_in(ps.Async(), "async")
    assert found >= GOAL, found
