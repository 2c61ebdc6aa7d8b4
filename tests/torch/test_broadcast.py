"""broadcast: every type, root, size and layout."""

from __future__ import annotations

import itertools

import torch
import torch.distributed as dist
from cases import LARGE, LAYOUTS, MOVABLE, check, done, lacks, me, small_counts, values
from harness import ALL_WORLDS, distributed


def one(dtype: torch.dtype, count: int, root: int) -> None:
    rank, _ = me()
    own, expected = values(rank, count, dtype), values(root, count, dtype)
    for layout, asynchronous in itertools.product(LAYOUTS, (False, True)):
        if lacks("broadcast", dtype, layout=layout):
            continue
        tensor = layout(own)
        done(dist.broadcast(tensor, root, async_op=asynchronous))
        check(tensor, expected, dtype, count, f"root {root}", layout.__name__, asynchronous)


@distributed(*ALL_WORLDS)
def test_every_type_and_root() -> None:
    _, world = me()
    for dtype, count in itertools.product(MOVABLE, small_counts(world)):
        for root in {0, world // 2, world - 1}:
            one(dtype, count, root)


@distributed(*ALL_WORLDS)
def test_large() -> None:
    _, world = me()
    one(torch.float32, LARGE, world - 1)
    one(torch.uint8, 5 << 20, 0)


@distributed(2, 3)
def test_large_every_type() -> None:
    for dtype in MOVABLE:
        one(dtype, LARGE // 4, 1)


@distributed(3)
def test_roots_in_turn_without_waiting() -> None:
    rank, world = me()
    tensors = [values(rank, 1021, torch.float32) for _ in range(30)]
    works = [dist.broadcast(t, i % world, async_op=True) for i, t in enumerate(tensors)]
    for i in reversed(range(30)):
        done(works[i])
        check(tensors[i], values(i % world, 1021, torch.float32), "broadcast", i)
