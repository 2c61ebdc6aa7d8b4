"""gather and scatter: every type, root, size and layout."""

from __future__ import annotations

import itertools

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


@distributed(2, 3, gloo_lacks="needs equal sizes")
def test_gather_different_sizes() -> None:
    rank, world = me()
    for unit in (1, 1021, 50_001):
        outputs = [torch.zeros(peer * unit) for peer in range(world)]
        dist.gather(values(rank, rank * unit, torch.float32), None if rank else outputs, 0)
        for peer, output in enumerate([] if rank else outputs):
            check(output, values(peer, peer * unit, torch.float32), unit, f"from {peer}")


@distributed(2, 3, gloo_lacks="needs equal sizes")
def test_scatter_different_sizes() -> None:
    rank, world = me()
    for unit in (1, 1021, 50_001):
        inputs = [values(peer, peer * unit, torch.float32) for peer in range(world)]
        output = torch.zeros(rank * unit)
        dist.scatter(output, None if rank else inputs, 0)
        check(output, values(rank, rank * unit, torch.float32), unit)
