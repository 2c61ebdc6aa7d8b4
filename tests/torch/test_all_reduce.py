"""all_reduce: every type, operation, size, layout; exact, in place, the same bits on every rank."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.distributed as dist
from cases import (
    COMPLEX,
    LARGE,
    LAYOUTS,
    OPS,
    REDUCIBLE,
    SIGNED,
    Op,
    OpType,
    check,
    done,
    expect_reduced,
    lacks,
    me,
    reduction_exists,
    reductions,
    small_counts,
    values,
)
from harness import ALL_WORLDS, distributed


def one(dtype: torch.dtype, op: OpType, count: int) -> None:
    rank, _ = me()
    own, expected = values(rank, count, dtype, op), expect_reduced(count, dtype, op)
    for layout, asynchronous in itertools.product(LAYOUTS, (False, True)):
        if lacks("all_reduce", dtype, op, layout) or (dtype in COMPLEX and op == Op.PRODUCT):
            continue  # torch itself refuses the product of complex numbers, in all_reduce only
        tensor = layout(own)
        done(dist.all_reduce(tensor, op, async_op=asynchronous))
        check(tensor, expected, dtype, op, count, layout.__name__, f"async={asynchronous}")


@distributed(*ALL_WORLDS)
def test_every_type_and_operation() -> None:
    _, world = me()
    for (dtype, op), count in itertools.product(reductions(), small_counts(world)):
        one(dtype, op, count)


@distributed(2, 3)
def test_every_type_and_operation_large() -> None:
    for dtype, op in reductions():
        one(dtype, op, LARGE // 8)


@distributed(*ALL_WORLDS)
def test_large() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        one(dtype, Op.SUM, 100_003)
    one(torch.float32, Op.SUM, LARGE)
    one(torch.uint8, Op.MAX, 5 << 20)


@distributed(1, 2, 3)
def test_shapes() -> None:
    rank, _ = me()
    for shape in [(), (1, 1, 1), (3, 0, 2), (5, 7), (2, 3, 4, 5)]:
        count = torch.Size(shape).numel()
        tensor = values(rank, count, torch.float32).reshape(shape)
        dist.all_reduce(tensor)
        check(tensor, expect_reduced(count, torch.float32, Op.SUM).reshape(shape), shape)


@distributed(2, 3, gloo_lacks="returns garbage for tensors that are not contiguous")
def test_transposed_and_channels_last() -> None:
    rank, _ = me()
    expected = expect_reduced(360, torch.float32, Op.SUM)
    matrix = values(rank, 360, torch.float32).reshape(18, 20).t()
    dist.all_reduce(matrix)
    check(matrix, expected.reshape(18, 20).t(), "transposed")
    image = values(rank, 360, torch.float32).reshape(3, 4, 5, 6)
    image = image.to(memory_format=torch.channels_last)
    dist.all_reduce(image)
    check(image, expected.reshape(3, 4, 5, 6), "channels_last")


@distributed(1, 2, 3, 4, gloo_lacks="has no PREMUL_SUM")
def test_premul_sum() -> None:
    rank, _ = me()
    for dtype, count in itertools.product((torch.float32, torch.float64, torch.bfloat16), (0, 5)):
        for factor in (0.5, torch.tensor([0.5], dtype=dtype)):
            tensor = values(rank, count, dtype)
            dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
            check(tensor, expect_reduced(count, dtype, Op.SUM) * 0.5, "PREMUL_SUM", dtype, count)


@distributed(1, 2, 3, 4, gloo_lacks="has no average of integers")
def test_average_of_integers_at_the_extremes() -> None:
    """As NCCL has it: the sum wraps, the quotient is truncated toward zero."""
    rank, world = me()
    for dtype in (*SIGNED, torch.uint8):  # torch itself neither adds nor divides the others
        least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        rows = torch.tensor([least, most, least + 1, most - 1, -1 if least else 1, 0], dtype=dtype)
        everyone = [rows.roll(peer) for peer in range(world)]
        total = torch.stack(everyone).sum(0, dtype=dtype)  # wraps
        expected = [int(abs(t) // world * (-1 if t < 0 else 1)) for t in total.tolist()]
        for count in (1, 5000):
            tensor = everyone[rank].repeat(count)
            dist.all_reduce(tensor, Op.AVG)
            check(tensor, torch.tensor(expected, dtype=dtype).repeat(count), dtype, count)


@distributed(2, gloo_lacks="raises for the AVG of bool only after it has changed the tensor")
def test_what_does_not_exist_raises() -> None:
    rank, _ = me()
    for dtype, op in itertools.product(REDUCIBLE, OPS):
        if reduction_exists(dtype, op):
            continue
        before = values(rank, 4, dtype)
        tensor = before.clone()
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            dist.all_reduce(tensor, op)
        check(tensor, before, dtype, op, "was touched by a call that raised")


@distributed(2, 3, 4, 7)
def test_all_ranks_hold_the_same_bits() -> None:
    _, world = me()
    for dtype, count in itertools.product((torch.float32, torch.bfloat16), (3, 1021, 40_001)):
        torch.manual_seed(dist.get_rank())
        tensor = torch.randn(count).to(dtype)
        dist.all_reduce(tensor)
        everyone = [torch.empty_like(tensor) for _ in range(world)]
        dist.all_gather(everyone, tensor)
        for rank, other in enumerate(everyone):
            check(tensor, other, dtype, count, f"against rank {rank}")


@distributed(2, 3, 7)
def test_many_in_a_row() -> None:
    rank, world = me()
    tensor = torch.zeros(3, dtype=torch.int64)
    for step in range(500):
        tensor.fill_(rank + step)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [world * step + world * (world - 1) // 2] * 3, step
