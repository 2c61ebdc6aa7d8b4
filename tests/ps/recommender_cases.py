"""A recommender in a job of two workers, with rows at the servers, against the same model in one
process of torch that sees the workers' batches as one.

All trains by SGD, whose step is linear in the gradient: two pushes of half the rate are one of the
mean. Adagrad would be blind here, as it takes gradients of half the size for the same.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from rdmacoll import ps

USERS, ITEMS, KINDS, DIM = 120, 40, 8, 8
BATCH, STEPS = 64, 100  # of each worker
ROW_RATE, DENSE_RATE, MOMENTUM = 2.0, 0.05, 0.9
RTOL, ATOL = 1e-5, 1e-6  # of float32; in six trainings losses were off by 2.4e-7 at most
# Of the final loss, where nobody waits: in 24 trainings of 12 seeds it was off by 1.1 % at most. If
# pushes are halved, or every second one is lost, it is off by 67 % and more.
NEAR = 0.05
SEEDS = (0, 1, 2)
Batch = tuple[torch.Tensor, torch.Tensor]


def own(name: str) -> str:
    return f"{name} of {dist.get_rank()}"


def tags(items: torch.Tensor) -> torch.Tensor:
    """Of each item its bag: itself, and its kind."""
    return torch.stack([items, ITEMS + items % KINDS], 1)


def likes(users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
    """What is learned."""
    return (torch.sin(users) + torch.cos(items) > 0).float()


class Recommender(nn.Module):
    users: Any  # modules of torch, or of ps
    items: Any

    def __init__(self, users: nn.Module, items: nn.Module, dense: nn.Module) -> None:
        super().__init__()
        self.users, self.items, self.dense = users, items, dense

    def loss(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        both = torch.cat([self.users(users), self.items(tags(items))], 1)
        logits = self.dense(both).flatten()
        return functional.binary_cross_entropy_with_logits(logits, likes(users, items))

    def loss_of_all(self) -> float:
        with torch.no_grad():
            pairs = torch.cartesian_prod(torch.arange(USERS), torch.arange(ITEMS))
            return self.loss(pairs[:, 0], pairs[:, 1]).item()


def dense_layers(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2 * DIM, 32), nn.Tanh(), nn.Linear(32, 1))


def batches(seed: int, workers: int) -> list[Batch]:
    """Of each step that of all workers, one behind the other."""
    generator = torch.Generator().manual_seed(seed)
    size = (workers * BATCH,)
    return [
        (
            torch.randint(USERS, size, generator=generator),
            torch.randint(ITEMS, size, generator=generator),
        )
        for _ in range(STEPS)
    ]


def parts(whole: list[Batch]) -> list[Batch]:
    """This worker's."""
    mine = slice(BATCH * dist.get_rank(), BATCH * (dist.get_rank() + 1))
    return [(users[mine], items[mine]) for users, items in whole]


def at_servers(name: str, dense: nn.Module, seed: int, workers: int) -> Recommender:
    sgd = ps.SGD(lr=ROW_RATE / workers)  # each worker's gradient is that of its own mean
    initial = ps.Uniform(-0.1, 0.1, seed=seed)
    users = ps.Embedding(f"{name}/users", DIM, optimizer=sgd, initial=initial)
    items = ps.EmbeddingBag(f"{name}/items", DIM, mode="sum", optimizer=sgd, initial=initial)
    return Recommender(users, items, dense)


def rows_of(module: Any, count: int) -> torch.Tensor:
    found: torch.Tensor = module._kv.row_pull(module._name, torch.arange(count))
    return found


def in_one_process(beginning: Recommender) -> Recommender:
    """The same, of torch alone, with the servers' rows."""
    users, items = (
        nn.Embedding(USERS, DIM, sparse=True),
        nn.EmbeddingBag(ITEMS + KINDS, DIM, mode="sum", sparse=True),
    )
    with torch.no_grad():
        users.weight.copy_(rows_of(beginning.users, USERS))
        items.weight.copy_(rows_of(beginning.items, ITEMS + KINDS))
    return Recommender(users, items, copy.deepcopy(beginning.dense))


def train(
    model: Recommender,
    optimizers: list[optim.Optimizer],
    data: list[Batch],
    meet: Callable[[], object] = lambda: None,
) -> list[float]:
    """Its losses. meet: for the others, between forward and backward and after a step."""
    losses = []
    for batch in data:
        loss = model.loss(*batch)
        meet()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
        meet()
    return losses


def train_in_one_process(model: Recommender, data: list[Batch]) -> list[float]:
    rows = [*model.users.parameters(), *model.items.parameters()]
    dense = optim.SGD(model.dense.parameters(), lr=DENSE_RATE, momentum=MOMENTUM)
    return train(model, [optim.SGD(rows, lr=ROW_RATE), dense], data)


def wait_for_rows(model: Recommender) -> None:
    for module in (model.users, model.items):
        module.wait()


def assert_trained_alike(ours: Recommender, theirs: Recommender) -> None:
    for found, wanted in (
        (rows_of(ours.users, USERS), theirs.users.weight),
        (rows_of(ours.items, ITEMS + KINDS), theirs.items.weight),
        *zip(ours.dense.parameters(), theirs.dense.parameters(), strict=True),
    ):
        torch.testing.assert_close(found.detach(), wanted.detach(), rtol=RTOL, atol=ATOL)


def case_one_worker_trains_as_one_process(_kv: ps.KV) -> None:
    """All steps have the same loss, up to roundings: there is nobody else, and a forward has what
    was pushed before."""
    dense = dense_layers(0)
    ours = at_servers(own("alone"), dense, seed=0, workers=1)
    theirs = in_one_process(ours)
    data = parts(batches(0, dist.get_world_size()))
    wanted = train_in_one_process(theirs, data)
    optimizer = ps.Optimizer(
        dense.parameters(), optim.SGD, name=own("dense"), lr=DENSE_RATE, momentum=MOMENTUM
    )
    found = train(ours, [optimizer], data)
    torch.testing.assert_close(found, wanted, rtol=RTOL, atol=ATOL)
    assert wanted[-1] < 0.6 * wanted[0], "hardly anything is learned"
    wait_for_rows(ours)
    assert_trained_alike(ours, theirs)


def case_two_workers_that_meet_in_each_step(_kv: ps.KV) -> None:
    """Then each gradient is of the rows that one process has, and all is the same up to roundings:
    the mean of the workers' losses, and at the end rows and layers."""
    world = dist.get_world_size()
    dense = dense_layers(0)
    ours = at_servers("met", dense, seed=0, workers=world)
    theirs = in_one_process(ours)
    data = batches(0, world)
    wanted = train_in_one_process(theirs, data)
    dist.barrier()  # all have the rows of the beginning

    def meet() -> None:
        wait_for_rows(ours)
        dist.barrier()

    found = torch.tensor(train_by_ddp(ours, parts(data), meet))
    dist.all_reduce(found)
    torch.testing.assert_close((found / world).tolist(), wanted, rtol=RTOL, atol=ATOL)
    assert_trained_alike(ours, theirs)


def train_by_ddp(
    model: Recommender, data: list[Batch], meet: Callable[[], object] = lambda: None
) -> list[float]:
    mine = Recommender(model.users, model.items, DistributedDataParallel(model.dense))
    optimizer = optim.SGD(model.dense.parameters(), lr=DENSE_RATE, momentum=MOMENTUM)
    return train(mine, [optimizer], data, meet)


def how_far(
    name: str, seed: int, fault: Callable[[], AbstractContextManager[object]] = nullcontext
) -> float:
    """The final loss of workers that do not wait for each other's rows, of that in one process."""
    world = dist.get_world_size()
    dense = dense_layers(seed)
    ours = at_servers(f"{name} {seed}", dense, seed, world)
    theirs = in_one_process(ours)
    data = batches(seed, world)
    train_in_one_process(theirs, data)
    dist.barrier()
    with fault():
        train_by_ddp(ours, parts(data))
    wait_for_rows(ours)
    dist.barrier()
    return abs(ours.loss_of_all() / theirs.loss_of_all() - 1)


def case_two_workers_that_do_not_wait(_kv: ps.KV) -> None:
    """A row may miss the other's last pushes when it is pulled, so bits differ from run to run. The
    loss of all pairs comes out the same, up to NEAR."""
    for seed in SEEDS:
        off = how_far("free", seed)
        assert off < NEAR, (seed, off)


def halved() -> AbstractContextManager[object]:
    push = ps.KV.row_push

    def push_half(
        kv: ps.KV, name: str, ids: torch.Tensor, values: torch.Tensor, **rate: Any
    ) -> object:
        return push(kv, name, ids, values / 2, **rate)

    return mock.patch.object(ps.KV, "row_push", push_half)


def every_second_one_lost() -> AbstractContextManager[object]:
    push, seen = ps.KV.row_push, [0]

    def push_some(
        kv: ps.KV, name: str, ids: torch.Tensor, values: torch.Tensor, **rate: Any
    ) -> object:
        seen[0] += 1
        if seen[0] // 2 % 2 == 1:  # of both tables
            ids, values = ids[:0], values[:0]
        return push(kv, name, ids, values, **rate)

    return mock.patch.object(ps.KV, "row_push", push_some)


def case_faults_would_be_seen(_kv: ps.KV) -> None:
    """That the case above can fail."""
    for fault in halved, every_second_one_lost:
        off = how_far(fault.__name__, 0, fault)
        assert off > 4 * NEAR, (fault.__name__, off)
