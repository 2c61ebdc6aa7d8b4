"""Schedules of rates, in a job of three workers: torch's of ps.Optimizer, and lr of modules.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.optim import lr_scheduler
from training_cases import assert_same, model, own, refused

from rdmacoll import ps

STEPS = 12
Schedule = Callable[[optim.Optimizer], Any]


def warm_up(optimizer: optim.Optimizer) -> lr_scheduler.LRScheduler:
    """From 0."""
    return lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 4, 1.0))


def one_cycle(optimizer: optim.Optimizer) -> lr_scheduler.LRScheduler:
    """Of momentum, too; of Adam that is betas[0]."""
    return lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=STEPS + 1)


def cosine(optimizer: optim.Optimizer) -> lr_scheduler.LRScheduler:
    return lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)


def halved_in_the_first(optimizer: optim.Optimizer) -> lr_scheduler.LRScheduler:
    """Of two groups."""
    return lr_scheduler.LambdaLR(optimizer, [lambda step: 0.5**step, lambda step: 1.0])


VARIANTS: list[tuple[type[optim.Optimizer], dict[str, Any], Schedule]] = [
    (optim.SGD, {"lr": 0.1}, warm_up),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}, one_cycle),
    (optim.Adagrad, {"lr": 0.1}, cosine),
    (optim.Adam, {"lr": 0.01}, one_cycle),
    (optim.AdamW, {"lr": 0.01}, cosine),
]


def train(net: nn.Module, optimizer: optim.Optimizer, schedule: Schedule, part: slice) -> None:
    scheduled = schedule(optimizer)
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        inputs = torch.randn(24, 8, generator=generator)[part]
        optimizer.zero_grad()
        net(inputs).square().mean().backward()
        optimizer.step()
        scheduled.step()


def case_torchs_schedules(_kv: ps.KV) -> None:
    """Each worker alone; all of them with a part of the batch."""
    world, rank = dist.get_world_size(), dist.get_rank()
    every, mine = slice(None), slice(24 // world * rank, 24 // world * (rank + 1))
    for number, (kind, options, schedule) in enumerate(VARIANTS):
        wanted = model()
        train(wanted, kind(wanted.parameters(), **options), schedule, every)
        for mode, name, part in (
            (ps.Async(), own(f"async {number}"), every),
            (ps.Sync(), f"sync {number}", mine),
        ):
            net = model()
            ours = ps.Optimizer(net.parameters(), kind, mode, name, **options)
            train(net, ours, schedule, part)
            assert_same(net, wanted, (kind, schedule, mode))


def case_a_group_with_a_schedule_of_its_own(_kv: ps.KV) -> None:
    nets = [model(), model()]
    kinds: list[Any] = [
        lambda groups: optim.SGD(groups, lr=0.1),
        lambda groups: ps.Optimizer(groups, optim.SGD, name=own("groups"), lr=0.1),
    ]
    for net, kind in zip(nets, kinds, strict=True):
        optimizer = kind([{"params": net[0].parameters()}, {"params": net[2].parameters()}])
        train(net, optimizer, halved_in_the_first, slice(None))
    assert_same(*nets)


def case_the_rate_of_rank_0_counts_in_sync(_kv: ps.KV) -> None:
    """Each of the others has another one; in Stale each steps with its own."""
    rank, workers = dist.get_rank(), range(dist.get_world_size())
    for mode in ps.Sync(), ps.Stale(0):
        net = nn.ParameterList([torch.zeros(300_000)])
        optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), mode, f"rank 0 of {mode}")
        rates = [[2.0 ** ((step + rank) % 4) for step in range(STEPS)] for rank in workers]
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rates[rank][step]
            net[0].grad = torch.full_like(net[0], 3.0)
            optimizer.step()
        counted = rates[:1] if isinstance(mode, ps.Sync) else rates
        wanted = -3.0 * sum(sum(one) for one in counted)
        dist.barrier()
        assert _pulled(optimizer) == [wanted], mode


def _pulled(optimizer: ps.Optimizer) -> list[float]:
    flat = optimizer._tables[0]
    found: list[float] = optimizer._kv.pull(flat.table).unique().tolist()
    return found


def case_the_lr_of_modules(_kv: ps.KV) -> None:
    """That of when the gradient came, also where it is pushed later."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for pace in ps.Async(), ps.Sync(), ps.Stale(0):
        name = own("module") if isinstance(pace, ps.Async) else f"module {pace}"
        module = ps.Embedding(name, 2, optimizer=ps.SGD(lr=1.0), pace=pace)
        assert module.lr is None
        ids = torch.tensor([rank, 7])
        for lr in None, 4.0, 2, 0.0:
            module.lr = lr
            module(ids).sum().backward()
        module.lr = 1000.0
        module.wait()
        dist.barrier()
        total = 1.0 + 4 + 2
        every = {ps.Async: 1.0, ps.Sync: 1.0, ps.Stale: float(world)}[type(pace)]
        own_part = 1 / world if isinstance(pace, ps.Sync) else 1.0
        found = module._kv.row_pull(name, ids)
        assert torch.allclose(found[0], torch.tensor(-total * own_part)), (pace, found)
        assert torch.allclose(found[1], torch.tensor(-total * every)), (pace, found)
        dist.barrier()


def case_refusals(kv: ps.KV) -> None:
    """Nothing is pushed, of none of the groups."""
    net = model()
    before = copy.deepcopy(net)
    for kind, key, value, words in (
        (optim.SGD, "weight_decay", 0.5, "weight_decay is 0.5 now, and 0.0 at the servers"),
        (optim.SGD, "lr", -1.0, "lr is -1: give 0 or more"),
        (optim.SGD, "lr", float("nan"), "lr is nan"),
        (optim.SGD, "momentum", 0.5, "made without, and has no state for it; leave it 0"),
        (optim.Adam, "betas", (0.9, 0.5), r"betas is \(0.9, 0.5\) now, .*schedules may change lr"),
        (optim.Adam, "betas", (1.5, 0.999), "beta1 is 1.5: give 0 or more, and less than 1"),
    ):
        of_groups = [{"params": net[0].parameters()}, {"params": net[2].parameters()}]
        name = own(f"refused {kind.__name__} {key} {value}")
        optimizer = ps.Optimizer(of_groups, kind, name=name, lr=0.1)
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.param_groups[1][key] = value
        refused((ValueError, words, optimizer.step))
        assert_same(net, before)
    kv.init(own("rates"), torch.zeros(2), ps.SGD(lr=1.0))
    kv.init(own("no rates"), torch.zeros(2))
    ones: Any = torch.ones(2)
    text: Any = "1"
    module, none = ps.Embedding(own("a"), 2, optimizer=ps.SGD(lr=1.0)), ps.Embedding(own("b"), 2)
    refused(
        (ValueError, "'rates of .*lr is -1: give 0", lambda: kv.push(own("rates"), ones, lr=-1)),
        (ValueError, "it has no optimizer, so", lambda: kv.push(own("no rates"), ones, lr=1)),
        (TypeError, "lr is a str", lambda: kv.push(own("rates"), ones, lr=text)),
        (TypeError, "lr is a bool", lambda: kv.push_range(own("rates"), 0, ones, lr=True)),
        (ValueError, "'a of .*lr is -2", lambda: setattr(module, "lr", -2.0)),
        (TypeError, "lr is a Tensor; give a float", lambda: setattr(module, "lr", ones[0])),
        (ValueError, "has no optimizer; leave lr out", lambda: setattr(none, "lr", 1.0)),
    )
    assert kv.pull(own("rates")).tolist() == [0.0, 0.0]
