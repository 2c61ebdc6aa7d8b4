"""Several tensors in one call: the coalesced collectives, the manager, functional collectives."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from cases import Op, check, done, expect_reduced, me, values
from harness import ALL_WORLDS, distributed
from torch.distributed.distributed_c10d import _coalescing_manager
from world import backend

COUNTS = (1, 0, 1021, 40_001, 3)


def pg() -> dist.ProcessGroup:
    group = dist.group.WORLD
    assert group is not None
    return group


@distributed(*ALL_WORLDS)
def test_all_reduce_coalesced() -> None:
    rank, _ = me()
    for asynchronous in (False, True):
        counts = [c for c in COUNTS if c or backend() != "gloo"]  # gloo wants no empty one
        tensors = [values(rank, count, torch.float32) for count in counts]
        done(dist.all_reduce_coalesced(tensors, async_op=asynchronous))
        for count, tensor in zip(counts, tensors, strict=True):
            check(tensor, expect_reduced(count, torch.float32, Op.SUM), count)


@distributed(1, 2, 3, 4, gloo_lacks="wants tensors that are not empty and have no gaps")
def test_all_reduce_coalesced_of_many() -> None:
    """Small ones go together, in several turns, with large ones and ones with gaps between them."""
    rank, _ = me()
    counts = [*range(40), 100_003, *[15_000] * 30, 5, 70_000, 0, 9]
    tensors = []
    for index, count in enumerate(counts):
        tensor = torch.zeros(count, 2)[:, index % 2] if index % 3 == 0 else torch.zeros(count)
        tensors.append(tensor.copy_(values(rank, count, torch.float32)))
    dist.all_reduce_coalesced(tensors)
    for count, tensor in zip(counts, tensors, strict=True):
        check(tensor, expect_reduced(count, torch.float32, Op.SUM), count)


@distributed(2, fresh=True, gloo_lacks="has no check of what ranks call")
def test_all_reduce_coalesced_of_other_sizes_is_a_mismatch() -> None:
    rank, _ = me()
    counts = (3, 5) if rank == 0 else (5, 3)
    with pytest.raises(RuntimeError, match="in another operation|gave the group up"):
        dist.all_reduce_coalesced([torch.ones(count) for count in counts])


@distributed(2, 3, gloo_lacks="wants one type and SUM")
def test_all_reduce_coalesced_of_other_types() -> None:
    rank, _ = me()
    for dtype, op in ((torch.int32, Op.MAX), (torch.bfloat16, Op.AVG), (torch.int8, Op.BXOR)):
        tensors = [values(rank, count, dtype, op) for count in COUNTS]
        dist.all_reduce_coalesced(tensors, op)
        for count, tensor in zip(COUNTS, tensors, strict=True):
            check(tensor, expect_reduced(count, dtype, op), dtype, op, count)


@distributed(*ALL_WORLDS)
def test_all_gather_coalesced() -> None:
    rank, world = me()
    counts = [c for c in COUNTS if c or backend() != "gloo"]
    inputs = [values(rank, count, torch.float32) for count in counts]
    outputs = [[torch.zeros(count) for count in counts] for _ in range(world)]
    dist.all_gather_coalesced(outputs, inputs)
    for peer, row in enumerate(outputs):
        for count, tensor in zip(counts, row, strict=True):
            check(tensor, values(peer, count, torch.float32), count, f"from {peer}")


@distributed(*ALL_WORLDS)
def test_into_tensor_coalesced() -> None:
    rank, world = me()
    inputs = [values(rank, count, torch.float32) for count in COUNTS]
    outputs = [torch.zeros(world * count) for count in COUNTS]
    done(pg().allgather_into_tensor_coalesced(outputs, inputs))
    for count, output in zip(COUNTS, outputs, strict=True):
        expected = torch.cat([values(peer, count, torch.float32) for peer in range(world)])
        check(output, expected, "allgather_into_tensor_coalesced", count)

    inputs = [values(rank, world * count, torch.float32) for count in COUNTS]
    outputs = [torch.zeros(count) for count in COUNTS]
    done(pg().reduce_scatter_tensor_coalesced(outputs, inputs))
    for count, output in zip(COUNTS, outputs, strict=True):
        expected = expect_reduced(world * count, torch.float32, Op.SUM)
        expected = expected[rank * count : (rank + 1) * count]
        check(output, expected, "reduce_scatter_tensor_coalesced", count)


@distributed(1, 2, 3, 4)
def test_coalescing_manager() -> None:
    rank, world = me()
    tensors = [values(rank, count, torch.float32) for count in (1, 1021, 40_001)]
    with _coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in tensors:
        check(tensor, expect_reduced(tensor.numel(), torch.float32, Op.SUM), tensor.numel())

    outputs = [torch.zeros(world * count) for count in (2, 1021)]
    with _coalescing_manager():
        for output in outputs:
            own = values(rank, output.numel() // world, torch.float32)
            dist.all_gather_into_tensor(output, own)
    for output in outputs:
        count = output.numel() // world
        expected = torch.cat([values(peer, count, torch.float32) for peer in range(world)])
        check(output, expected, "all_gather_into_tensor", count)


@distributed(1, 2, 3, 4)
def test_functional() -> None:
    rank, world = me()
    group = list(range(world))
    for count in (1, 1021):
        own = values(rank, count, torch.float32)
        check(
            functional.all_reduce(own, "sum", group) + 0,
            expect_reduced(count, torch.float32, Op.SUM),
            "all_reduce",
        )
        everyone = torch.cat([values(peer, count, torch.float32) for peer in range(world)])
        check(functional.all_gather_tensor(own, 0, group) + 0, everyone, "all_gather_tensor")
        whole = values(rank, world * count, torch.float32)
        part = functional.reduce_scatter_tensor(whole, "sum", 0, group) + 0
        expected = expect_reduced(world * count, torch.float32, Op.SUM)
        check(part, expected[rank * count : (rank + 1) * count], "reduce_scatter_tensor")
        mixed = functional.all_to_all_single(whole, None, None, group) + 0
        for peer, piece in enumerate(mixed.split(count)):
            theirs = values(peer, world * count, torch.float32).split(count)[rank]
            check(piece, theirs, "all_to_all_single", f"from {peer}")
        first = functional.broadcast(own, 0, group) + 0
        check(first, values(0, count, torch.float32), "broadcast")
        for reduced, tensor in zip(
            functional.all_reduce_coalesced([own, own * 2], "sum", group), (1, 2), strict=True
        ):
            check(reduced + 0, tensor * expect_reduced(count, torch.float32, Op.SUM), "coalesced")
