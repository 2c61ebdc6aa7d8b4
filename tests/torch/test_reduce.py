"""reduce: every type, operation, root, size and layout; exact on the root."""

from __future__ import annotations

import itertools

import torch
import torch.distributed as dist
from cases import (
    LARGE,
    LAYOUTS,
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


def one(dtype: torch.dtype, op: OpType, count: int, root: int) -> None:
    rank, _ = me()
    own = values(rank, count, dtype, op)
    expected = expect_reduced(count, dtype, op) if rank == root else None
    for layout, asynchronous in itertools.product(LAYOUTS, (False, True)):
        if lacks("reduce", dtype, op, layout):
            continue
        tensor = layout(own)
        done(dist.reduce(tensor, root, op, async_op=asynchronous))
        if expected is not None:
            check(tensor, expected, dtype, op, count, layout.__name__, asynchronous)


@distributed(*ALL_WORLDS)
def test_every_type_operation_and_root() -> None:
    _, world = me()
    roots = itertools.cycle(range(world))
    for (dtype, op), count in itertools.product(reductions(), small_counts(world)):
        one(dtype, op, count, next(roots))


@distributed(*ALL_WORLDS)
def test_large() -> None:
    _, world = me()
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        one(dtype, Op.SUM, 100_003, world - 1)
    one(torch.float32, Op.SUM, LARGE, 0)
    one(torch.uint8, Op.MAX, 5 << 20, world // 2)
