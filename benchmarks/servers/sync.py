"""Steps of a model that is nothing but bytes: ps.Sync beside DDP over gloo, in two workers."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from turns import Seconds, in_turns

from rdmacoll import ps

WIDTH, LAYERS = 2048, 4  # 64 MB
RATE = 1e-3
ATOL = 1e-6  # the two add up gradients in another order


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))


def sync(_kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    gloo = dist.new_group(backend="gloo")
    ours = model()
    plain, viewed = copy.deepcopy(ours), copy.deepcopy(ours)
    inputs = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(dist.get_rank()))

    def step_of(net: nn.Module, optimizer: optim.Optimizer) -> Callable[[], float]:
        def step() -> float:
            dist.barrier(group=gloo)
            began = time.perf_counter()
            optimizer.zero_grad()
            net(inputs).square().sum().backward()
            optimizer.step()
            return time.perf_counter() - began

        return step

    def step_of_ddp(net: nn.Module, has_views: bool) -> Callable[[], float]:
        ddp = DistributedDataParallel(net, process_group=gloo, gradient_as_bucket_view=has_views)
        return step_of(ddp, optim.SGD(net.parameters(), lr=RATE))

    optimizer = ps.Optimizer(ours.parameters(), optim.SGD, ps.Sync(), "bytes", lr=RATE)
    ways = {
        "servers": step_of(ours, optimizer),
        "DDP": step_of_ddp(plain, False),
        "DDP, views": step_of_ddp(viewed, True),
    }
    seconds = in_turns(rounds, ways)
    for mine, *theirs in zip(
        ours.parameters(), plain.parameters(), viewed.parameters(), strict=True
    ):
        if not all(torch.allclose(mine, their, rtol=0, atol=ATOL) for their in theirs):
            raise SystemExit("DDP has trained to other parameters than the servers")
    return {"a step, 64 MB": seconds}
