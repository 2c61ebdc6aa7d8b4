"""ps.Optimizer with workers that wait for each other, in a job of three.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import copy
import random
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn, optim
from training_cases import assert_same, everyones, model, refused

from rdmacoll import ps

STEPS = 10
SHORT_S = 0.5  # a timeout that is to pass
SHARD = 256 * 1024  # elements


def sum_model(elements: int = 6) -> nn.ParameterList:
    return nn.ParameterList([torch.zeros(elements)])


def give_gradient(net: nn.ParameterList, value: float) -> None:
    for parameter in net:
        parameter.grad = torch.full_like(parameter, value)


def case_sync_trains_as_one_process_with_the_whole_batch(_kv: ps.KV) -> None:
    world, rank = dist.get_world_size(), dist.get_rank()
    variants: list[tuple[type[optim.Optimizer], dict[str, Any]]] = [
        (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (optim.Adam, {"lr": 0.01}),
    ]
    for kind, options in variants:
        net = model()
        wanted = copy.deepcopy(net)
        ours = ps.Optimizer(net.parameters(), kind, ps.Sync(), kind.__name__, **options)
        theirs = kind(wanted.parameters(), **options)
        generator = torch.Generator().manual_seed(1)
        for _ in range(STEPS):
            batch = torch.randn(8 * world, 8, generator=generator)
            for one, optimizer, inputs in (
                (net, ours, batch[8 * rank : 8 * rank + 8]),
                (wanted, theirs, batch),
            ):
                optimizer.zero_grad()
                one(inputs).square().mean().backward()
                optimizer.step()
        assert_same(net, wanted, kind)


def case_sync_has_the_same_bits_whoever_comes_first(_kv: ps.KV) -> None:
    """They are those of gradients that are added in the order of ranks."""
    world, rank = dist.get_world_size(), dist.get_rank()
    gradients = torch.randn(STEPS, world, 700_001, generator=torch.Generator().manual_seed(3))
    wanted = torch.zeros(700_001)
    for step in range(STEPS):
        total = gradients[step, 0].clone()
        for other in range(1, world):
            total += gradients[step, other]
        wanted += torch.tensor(-0.5) * (total / world)
    jitter = random.Random(rank)
    for run in range(2):
        net = sum_model(700_001)
        optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=0.5), ps.Sync(), f"bits {run}")
        for step in range(STEPS):
            time.sleep(jitter.random() * 0.01)
            net[0].grad = gradients[step, rank]
            optimizer.step()
        assert torch.equal(net[0].detach(), wanted)


def case_all_have_the_same_parameters_after_each_step(_kv: ps.KV) -> None:
    """Also where some of them are frozen, of several groups and shards."""
    parameters = [torch.zeros(SHARD + 9), torch.ones(7), torch.zeros(5)]
    net = nn.ParameterList(parameters)
    net[1].requires_grad_(False)
    of_groups = [{"params": [net[0], net[1]]}, {"params": [net[2]], "lr": 2.0}]
    optimizer = ps.Optimizer(of_groups, ps.SGD(lr=1.0), ps.Sync(), "frozen")
    for step in range(1, 4):
        for number in (0, 2):
            net[number].grad = torch.full_like(net[number], float(dist.get_rank() * 3))
        optimizer.step()
        mean = sum(rank * 3 for rank in range(dist.get_world_size())) / dist.get_world_size()
        assert [one.unique().tolist() for one in net] == [[-mean * step], [1.0], [-2 * mean * step]]
        first, *others = everyones(net)
        assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


def case_large_parameters_are_pulled_where_they_are(_kv: ps.KV) -> None:
    """Gradients are integers, and the mean of two workers is exact."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    for mode in ps.Sync(), ps.Stale(0):
        net = nn.ParameterList([torch.zeros(3), torch.zeros(300, 300), torch.zeros(5)])
        name = f"large in {mode}"
        optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), mode=mode, name=name)
        for step in range(1, 6):
            for number, parameter in enumerate(net):
                parameter.grad = torch.full_like(parameter, 2.0 * (rank + 1) * (number + 1))
            optimizer.step()
            total = -sum(2.0 * (worker + 1) for worker in range(workers)) * step
            each = total / workers if isinstance(mode, ps.Sync) else total
            for number, parameter in enumerate(net):
                assert torch.equal(parameter, torch.full_like(parameter, each * (number + 1)))
            dist.barrier()  # else one may be a step ahead before another one pulls


def late(kind: Any, name: str, ahead: int) -> None:
    """Rank 2 makes no step at first: the others come `ahead` steps far, and name it."""
    rank, world = dist.get_rank(), dist.get_world_size()
    net = sum_model()
    optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), kind, name)
    optimizer._kv._timeout = SHORT_S  # from now on: who makes it waits for others, too
    steps = ahead + 3
    made = 0
    if rank != 2:
        for _ in range(ahead):
            give_gradient(net, 3.0)
            optimizer.step()
        give_gradient(net, 3.0)
        words = rf"step {ahead + 1} of the optimizer '{name}' needs 1 .*: rank 2 has made 0$"
        with pytest.raises(TimeoutError, match=words):
            optimizer.step()
        made = ahead + 1
    dist.barrier()
    deadline = time.monotonic() + 20
    while made < steps:
        give_gradient(net, 3.0)
        try:
            optimizer.step()
        except TimeoutError:  # the others' turn may come late here
            assert time.monotonic() < deadline
        made += 1
    dist.barrier()
    found = torch.empty(6)
    total = 3.0 * steps * (1 if isinstance(kind, ps.Sync) else world)
    optimizer._kv._pull_step(f"{name}/0", found, steps).wait(timeout=20)
    assert found.unique().tolist() == [-total]


def case_sync_names_who_is_late(_kv: ps.KV) -> None:
    late(ps.Sync(), "sync late", ahead=0)


def case_stale_goes_ahead_so_many_steps(_kv: ps.KV) -> None:
    late(ps.Stale(2), "stale late", ahead=2)


def case_refused_modes(kv: ps.KV) -> None:
    net = sum_model()
    ours: Any = ps.Optimizer
    half: Any = 0.5
    refused(
        (ValueError, "steps=-1; give 0 or more", lambda: ps.Stale(-1)),
        (TypeError, "steps is a float", lambda: ps.Stale(half)),
        (TypeError, "mode is Sync; give", lambda: ours(net.parameters(), ps.SGD(), ps.Sync)),
        (TypeError, "mode is str", lambda: ours(net.parameters(), ps.SGD(), "sync")),
    )
    optimizer = ps.Optimizer(net.parameters(), ps.SGD(), ps.Sync(), "own")
    kv._tables["own/0"] = optimizer._kv._tables["own/0"]  # as if it were made with this KV
    words = "the workers of table 'own/0' go in step: .* leave that to the optimizer"
    refused(
        (ValueError, "parameter 0 of 'own/0' has no gradient", optimizer.step),
        (ValueError, words, lambda: kv.push("own/0", torch.zeros(6))),
    )
    give_gradient(net, 0.0)
    optimizer.step()


def case_one_mode_for_all(_kv: ps.KV) -> None:
    if dist.get_rank() == 0:
        ps.Optimizer(sum_model().parameters(), ps.SGD(), ps.Sync(), "one")
    dist.barrier()
    if dist.get_rank() == 1:
        words = "table 'one/0' is another one .* mode"
        for mode in ps.Async(), ps.Stale(1):
            with pytest.raises(ValueError, match=words):
                ps.Optimizer(sum_model().parameters(), ps.SGD(), mode, "one")
