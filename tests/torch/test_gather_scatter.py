"""gather and scatter: every type, root, size and layout."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.distributed as dist
from cases import LARGE, LAYOUTS, MOVABLE, Layout, check, done, lacks, me, small_counts, values
from harness import ALL_WORLDS, distributed


def gather(dtype: torch.dtype, count: int, root: int, layout: Layout, wait: bool) -> None:
    rank, world = me()
    peers = range(world if rank == root else 0)
    outputs = [layout(torch.zeros(count).to(dtype)) for _ in peers]
    own = layout(values(rank, count, dtype))
    done(dist.gather(own, outputs or None, root, async_op=wait))
    for peer, output in enumerate(outputs):
        check(output, values(peer, count, dtype), dtype, count, layout.__name__, f"from {peer}")


def scatter(dtype: torch.dtype, count: int, root: int, layout: Layout, wait: bool) -> None:
    rank, world = me()
    peers = range(world if rank == root else 0)
    inputs = [layout(values(peer + 1, count, dtype)) for peer in peers]
    output = layout(torch.zeros(count).to(dtype))
    done(dist.scatter(output, inputs or None, root, async_op=wait))
    check(output, values(rank + 1, count, dtype), dtype, count, layout.__name__, f"root {root}")


@distributed(*ALL_WORLDS)
def test_every_type() -> None:
    _, world = me()
    roots = itertools.cycle(range(world))
    for dtype, count, layout, wait in itertools.product(
        MOVABLE, small_counts(world), LAYOUTS, (False, True)
    ):
        if not lacks("gather", dtype, layout=layout):
            gather(dtype, count, next(roots), layout, wait)
        if not lacks("scatter", dtype, layout=layout):
            scatter(dtype, count, next(roots), layout, wait)


@distributed(*ALL_WORLDS)
def test_large() -> None:
    _, world = me()
    for root in {0, world - 1}:
        gather(torch.float32, LARGE, root, LAYOUTS[0], False)
        scatter(torch.float32, LARGE, root, LAYOUTS[0], True)
        gather(torch.uint8, 5 << 20, root, LAYOUTS[1], True)
        scatter(torch.uint8, 5 << 20, root, LAYOUTS[1], False)


@distributed(2, 3, 4)
def test_many_sizes_and_roots() -> None:
    """Over several hosts small blocks of a host go together, and large ones straight."""
    _, world = me()
    for count, root in itertools.product((1, 3, 100, 5000, 70_001), range(world)):
        gather(torch.int32, count, root, LAYOUTS[0], False)
        scatter(torch.int32, count, root, LAYOUTS[0], False)


@distributed(2, 3, gloo_lacks="other words")
def test_sizes_are_equal() -> None:
    rank, world = me()
    if rank == 0:
        tensors = [torch.zeros(3), *(torch.zeros(4) for _ in range(world - 1))]
        why = r"invalid tensor size at index 1 \(expected \[3\], got \[4\]\)"
        with pytest.raises(RuntimeError, match=why):
            dist.gather(torch.zeros(3), tensors, 0)
        with pytest.raises(RuntimeError, match=why):
            dist.scatter(torch.zeros(3), tensors, 0)
    gather(torch.float32, 3, 0, LAYOUTS[0], False)
