"""Wrong input raises at the call, naming what is wrong; nothing hangs and the group goes on."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import FLOAT8, Op, OpType, me
from harness import distributed
from torch import Tensor
from world import GROUP_TIMEOUT, backend, client_store

ANY = (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError)
GLOO = "waits for its timeout, or computes garbage, for part of these"


def refused(call: Callable[..., Any], *arguments: Any, match: str = "", **options: Any) -> None:
    with pytest.raises(ANY, match=match) as caught:
        call(*arguments, **options)
    text = str(caught.value)
    assert text.strip() and not isinstance(caught.value, dist.DistStoreError), text


def still_works() -> None:
    _, world = me()
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [float(world)] * 3


def meta(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta")


@distributed(2, 3, gloo_lacks=GLOO)
def test_devices() -> None:
    """torch itself answers for collectives of meta tensors only: ask the backend."""
    _, world = me()
    assert dist.group.WORLD is not None
    cpu: Any = dist.group.WORLD._get_backend(torch.device("cpu"))
    refused(cpu.allreduce, [meta(3)], match="meta")
    refused(cpu.broadcast, [meta(3)], match="meta")
    refused(cpu._allgather_base, meta(3 * world), meta(3), match="meta")
    mixed = [torch.ones(3)] * (world - 1) + [meta(3)]
    refused(cpu.allgather, [mixed], [torch.ones(3)], match="meta")
    refused(cpu.send, [meta(3)], 0, 0, match="meta")
    refused(cpu.recv, [meta(3)], 0, 0, match="meta")
    still_works()


@distributed(2, 3, gloo_lacks=GLOO)
def test_types() -> None:
    _, world = me()
    quantized = torch.quantize_per_tensor(torch.ones(4), 1.0, 0, torch.qint8)
    refused(dist.all_reduce, quantized)
    refused(dist.broadcast, quantized, 0)
    for dtype in FLOAT8:  # moved, not added
        refused(dist.all_reduce, torch.ones(4).to(dtype), match="(?i)float8")
        refused(dist.reduce, torch.ones(4).to(dtype), 0, match="(?i)float8")
    integers = torch.ones(4, dtype=torch.int64)
    refused(dist.all_reduce, torch.ones(4, dtype=torch.bool), Op.AVG, match="(?i)avg")
    refused(dist.all_reduce, torch.ones(4), Op.BAND, match="(?i)band|bit")
    refused(dist.all_reduce, torch.ones(4, dtype=torch.complex64), Op.MIN, match="(?i)min")
    refused(dist.all_gather, [integers] * world, torch.ones(4))
    refused(dist.all_gather_into_tensor, torch.ones(4 * world, dtype=torch.int64), torch.ones(4))
    refused(dist.reduce_scatter_tensor, torch.ones(4, dtype=torch.int64), torch.ones(4 * world))
    refused(dist.all_to_all_single, integers.repeat(world), torch.ones(4 * world))
    still_works()


@distributed(2, 3, gloo_lacks=GLOO)
def test_ranks() -> None:
    rank, world = me()
    for bad in (world, -1, 1000):
        refused(dist.broadcast, torch.ones(1), bad)
        refused(dist.reduce, torch.ones(1), bad)
        refused(dist.gather, torch.ones(1), None, bad)
        refused(dist.send, torch.ones(1), bad)
        refused(dist.recv, torch.ones(1), bad)
    pg = dist.group.WORLD
    assert pg is not None
    options = dist.BroadcastOptions()
    options.rootRank = world
    refused(pg.broadcast, [torch.ones(1)], options, match=str(world))
    refused(pg.send, [torch.ones(1)], world, 0, match=str(world))
    refused(pg.recv, [torch.ones(1)], world, 0, match=str(world))
    refused(pg.send, [torch.ones(1)], (rank + 1) % world, -1, match="(?i)tag")
    still_works()


@distributed(2, 3, gloo_lacks=GLOO)
def test_sizes_of_gathers() -> None:
    rank, world = me()
    refused(dist.all_gather, [torch.ones(3)] * (world + 1), torch.ones(3))
    refused(dist.all_gather, [], torch.ones(3))
    refused(dist.all_gather_into_tensor, torch.ones(3 * world + 1), torch.ones(3))
    if rank == 0:
        refused(dist.gather, torch.ones(3), [torch.ones(3)] * (world - 1), 0)
        refused(dist.gather, torch.ones(3), None, 0)
        refused(dist.scatter, torch.ones(3), [torch.ones(3)] * (world - 1), 0)
        refused(dist.scatter, torch.ones(3), [torch.ones(4)] * world, 0)
        refused(dist.scatter, torch.ones(3), None, 0)
    else:
        refused(dist.gather, torch.ones(3), [torch.ones(3)] * world, 0)
        refused(dist.scatter, torch.ones(3), [torch.ones(3)] * world, 0)
    still_works()


@distributed(2, 3, gloo_lacks=GLOO)
def test_sizes_of_scattering_collectives() -> None:
    rank, world = me()
    refused(dist.reduce_scatter_tensor, torch.ones(3), torch.ones(3 * world + 1))
    refused(dist.reduce_scatter, torch.ones(3), [torch.ones(3)] * (world + 1))
    inputs = [torch.ones(3) for _ in range(world)]
    inputs[rank] = torch.ones(4)
    refused(dist.reduce_scatter, torch.ones(3), inputs)
    refused(dist.all_to_all, [torch.ones(1)] * (world + 1), [torch.ones(1)] * (world + 1))
    refused(dist.all_to_all, [torch.ones(1)] * world, [torch.ones(1)] * (world - 1))
    whole = torch.ones(2 * world)
    refused(dist.all_to_all_single, torch.ones(2 * world + 1), torch.ones(2 * world + 1))
    refused(dist.all_to_all_single, whole, whole.clone(), [1] * world, [2] * world)
    refused(dist.all_to_all_single, whole, whole.clone(), [2] * (world - 1), [2] * world)
    refused(dist.all_to_all_single, whole, whole.clone(), [2] * world, [3] * world)
    still_works()


@distributed(2)
def test_not_tensors() -> None:
    refused(dist.all_reduce, 3)
    refused(dist.all_reduce, [torch.ones(1)])
    refused(dist.broadcast, None, 0)
    refused(dist.all_gather, torch.ones(2), torch.ones(1))
    still_works()


@distributed(2, gloo_lacks=GLOO)
def test_several_tensors_where_one_is_due() -> None:
    pg = dist.group.WORLD
    assert pg is not None
    pair = [torch.ones(1), torch.ones(1)]
    refused(pg.allreduce, pair)
    refused(pg.broadcast, pair, dist.BroadcastOptions())
    refused(pg.send, pair, 0, 0)
    refused(pg.allreduce, [])
    still_works()


def reduce_all(
    group: dist.ProcessGroup,
    count: int = 8,
    dtype: torch.dtype = torch.float32,
    op: OpType = Op.SUM,
) -> None:
    dist.all_reduce(torch.ones(count, dtype=dtype), op, group=group)


def cast(group: dist.ProcessGroup, root: int = 0) -> None:
    dist.broadcast(torch.ones(8), root, group=group)


# What rank 0 calls, and what the others call.
Calls = Callable[[dist.ProcessGroup], Any]
MISMATCHES: dict[str, tuple[Calls, Calls]] = {
    "count": (reduce_all, lambda group: reduce_all(group, 9)),
    "large count": (
        lambda group: reduce_all(group, 1 << 20),
        lambda group: reduce_all(group, (1 << 20) + 1),
    ),
    "small and large": (reduce_all, lambda group: reduce_all(group, 1 << 20)),
    "dtype": (reduce_all, lambda group: reduce_all(group, dtype=torch.int32)),
    "op": (reduce_all, lambda group: reduce_all(group, op=Op.MAX)),
    "kind": (reduce_all, cast),
    "root": (cast, lambda group: cast(group, 1)),
    "barrier": (lambda group: dist.barrier(group=group), reduce_all),
}


@pytest.mark.parametrize("what", MISMATCHES)
@distributed(2, 3, fresh=True, gloo_lacks="hangs or computes garbage")
def test_ranks_that_disagree(what: str) -> None:
    """Every rank raises, in the operation or in a later one, long before a timeout would."""
    rank, _ = me()
    group = dist.new_group(timeout=datetime.timedelta(hours=1))
    with pytest.raises(RuntimeError):
        MISMATCHES[what][0 if rank == 0 else 1](group)
        dist.barrier(group=group)


@distributed(2, init=False)
def test_wrong_rank_at_init() -> None:
    size = int(os.environ["WORLD_SIZE"])
    with pytest.raises(ANY):
        dist.init_process_group(
            backend(), store=client_store(), rank=size, world_size=size, timeout=GROUP_TIMEOUT
        )


@distributed(2, init=False)
def test_missing_rank_at_init() -> None:
    """Nobody hangs for ever: the others are told who did not come."""
    rank, second = int(os.environ["RANK"]), datetime.timedelta(seconds=2)
    if rank == 1:
        return
    with pytest.raises(RuntimeError):
        dist.init_process_group(
            backend(), store=client_store(), rank=rank, world_size=2, timeout=second
        )
        dist.all_reduce(torch.ones(1))
