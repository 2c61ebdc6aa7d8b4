"""reduce_scatter from a list and from one tensor: every type, operation, size and layout."""

from __future__ import annotations

import itertools

import torch
import torch.distributed as dist
from cases import (
    LARGE,
    LAYOUTS,
    Layout,
    Op,
    OpType,
    check,
    done,
    expect_reduced,
    lacks,
    me,
    reductions,
    small_counts,
    values,
)
from harness import ALL_WORLDS, distributed


def from_tensor(dtype: torch.dtype, op: OpType, count: int, layout: Layout, wait: bool) -> None:
    rank, world = me()
    whole = layout(values(rank, world * count, dtype, op))
    output = layout(torch.zeros(count).to(dtype))
    done(dist.reduce_scatter_tensor(output, whole, op, async_op=wait))
    expected = expect_reduced(world * count, dtype, op)[rank * count : (rank + 1) * count]
    check(output, expected, "tensor", dtype, op, count, layout.__name__, wait)


def from_list(
    dtype: torch.dtype, op: OpType, counts: list[int], layout: Layout, wait: bool
) -> None:
    rank, _ = me()
    inputs = [layout(part) for part in values(rank, sum(counts), dtype, op).split(counts)]
    output = layout(torch.zeros(counts[rank]).to(dtype))
    done(dist.reduce_scatter(output, inputs, op, async_op=wait))
    expected = expect_reduced(sum(counts), dtype, op).split(counts)[rank]
    check(output, expected, "list", dtype, op, counts, layout.__name__, wait)


@distributed(*ALL_WORLDS)
def test_every_type_and_operation() -> None:
    _, world = me()
    waits = itertools.cycle((False, True))
    for (dtype, op), count, layout in itertools.product(reductions(), small_counts(world), LAYOUTS):
        if not lacks("reduce_scatter", dtype, op, layout):
            from_tensor(dtype, op, count, layout, next(waits))
            from_list(dtype, op, [count] * world, layout, next(waits))


@distributed(*ALL_WORLDS)
def test_large() -> None:
    _, world = me()
    for dtype, wait in itertools.product((torch.float32, torch.bfloat16), (False, True)):
        from_tensor(dtype, Op.SUM, LARGE // world, LAYOUTS[0], wait)
        from_list(dtype, Op.SUM, [100_003] * world, LAYOUTS[1], wait)
    from_tensor(torch.float32, Op.AVG, (5 << 20) // 4 // world, LAYOUTS[0], False)


@distributed(2, 3, 4, gloo_lacks="needs equal sizes")
def test_different_sizes() -> None:
    _, world = me()
    for unit in (1, 1021, 50_001):
        counts = [unit * ((peer + 1) % world) for peer in range(world)]
        from_list(torch.float32, Op.SUM, counts, LAYOUTS[0], False)


@distributed(2, 3)
def test_matrix() -> None:
    rank, world = me()
    output = torch.empty(2, 5)
    dist.reduce_scatter_tensor(output, values(rank, world * 10, torch.float32).reshape(-1, 5))
    expected = expect_reduced(world * 10, torch.float32, Op.SUM).reshape(world, 2, 5)[rank]
    check(output, expected)


@distributed(2, 3)
def test_output_inside_input() -> None:
    """FSDP hands over an output that is a view of the input."""
    rank, world = me()
    for count in (1, 1021, 100_003):
        whole = values(rank, world * count, torch.float32)
        output = whole[rank * count : (rank + 1) * count]
        dist.reduce_scatter_tensor(output, whole)
        expected = expect_reduced(world * count, torch.float32, Op.SUM)
        check(output, expected[rank * count : (rank + 1) * count], count)
