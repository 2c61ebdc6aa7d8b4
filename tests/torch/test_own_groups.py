"""rdmacoll.create_process_group(): groups that torch.distributed does not list."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from world import client_store

import rdmacoll

OURS = "is of rdmacoll"
SOON = datetime.timedelta(seconds=30)


def made(prefix: str, **options: Any) -> dist.ProcessGroup:
    rank, size = me()
    store = dist.PrefixStore(prefix, client_store())
    return rdmacoll.create_process_group(store, rank, size, SOON, **options)


def everyone_is_past(what: str) -> None:
    """By the Store, which no group has to do with."""
    store, (_, size) = client_store(), me()
    store.add(what, 1)
    until = time.monotonic() + SOON.total_seconds()
    while store.add(what, 0) < size:
        assert time.monotonic() < until, f"not all ranks are past {what}"
        time.sleep(1e-3)


@distributed(1, 2, 3, gloo_lacks=OURS)
def test_it_is_a_group_of_its_own() -> None:
    rank, size = me()
    listed = len(dist.distributed_c10d._world.pg_map)
    group = made("own", name="mine")
    assert (group.rank(), group.size(), group.group_name) == (rank, size, "mine")
    assert len(dist.distributed_c10d._world.pg_map) == listed
    tensor = torch.full((1000,), float(rank + 1))
    group.allreduce([tensor], dist.AllreduceOptions()).wait()
    assert torch.equal(tensor, torch.full((1000,), size * (size + 1) / 2))
    group.barrier().wait()


@distributed(2, 3, gloo_lacks=OURS)
def test_one_after_another() -> None:
    """As torchft does it; who has aborted a group is in the next one."""
    rank, size = me()
    for generation in range(3):
        group = made(f"generation {generation}")
        tensor = torch.full((5,), float(rank))
        group.allreduce([tensor], dist.AllreduceOptions()).wait()
        assert tensor[0].item() == size * (size - 1) / 2
        group.barrier().wait()
        everyone_is_past(f"barrier {generation}")  # who aborts ends the barrier of who is in it
        group.abort()
        with pytest.raises(RuntimeError):
            group.allreduce([tensor], dist.AllreduceOptions()).wait()


@distributed(2, gloo_lacks=OURS)
def test_its_options() -> None:
    group = made("ring", options=rdmacoll.Options(algorithm="ring"))
    backend: Any = group._get_backend(torch.device("cpu"))
    assert backend.options.algorithm == "ring"
    assert backend.options._timeout == SOON


@distributed(1, gloo_lacks=OURS)
def test_wrong_arguments() -> None:
    store = dist.HashStore()
    for rank, size in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=f"rank={rank}, world_size={size}"):
            rdmacoll.create_process_group(store, rank, size)
    with pytest.raises(TypeError, match=r"takes rdmacoll\.Options"):
        rdmacoll.create_process_group(store, 0, 1, options={"algorithm": "ring"})  # type: ignore
