"""all_to_all from lists and from one tensor, with equal and with different sizes."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.distributed as dist
from cases import LARGE, LAYOUTS, MOVABLE, Layout, check, done, lacks, me, small_counts, values
from harness import ALL_WORLDS, distributed
from world import backend

Sizes = list[list[int]]  # [sender][receiver]


def exchange(dtype: torch.dtype, sizes: Sizes, layout: Layout, asynchronous: bool) -> None:
    """Both forms; what sender s holds is values(s), cut by sizes[s]."""
    rank, world = me()
    theirs = [row[rank] for row in sizes]
    parts = values(rank, sum(sizes[rank]), dtype).split(sizes[rank])
    expected = [values(s, sum(sizes[s]), dtype).split(sizes[s])[rank] for s in range(world)]
    uneven = len({count for row in sizes for count in row}) > 1
    if not (lacks("all_to_all", dtype, layout=layout) or (uneven and backend() == "gloo")):
        inputs = [layout(part) for part in parts]
        outputs = [layout(torch.zeros(count).to(dtype)) for count in theirs]
        done(dist.all_to_all(outputs, inputs, async_op=asynchronous))
        for peer, output in enumerate(outputs):
            check(output, expected[peer], "list", dtype, sizes, layout.__name__, f"from {peer}")
    if not lacks("all_to_all_single", dtype, layout=layout):
        whole = layout(values(rank, sum(sizes[rank]), dtype))
        output = layout(torch.zeros(sum(theirs)).to(dtype))
        splits = (theirs, sizes[rank])
        done(dist.all_to_all_single(output, whole, *splits, async_op=asynchronous))
        for peer, part in enumerate(output.split(theirs)):
            check(part, expected[peer], "single", dtype, sizes, layout.__name__, f"from {peer}")


def equal(world: int, count: int) -> Sizes:
    return [[count] * world for _ in range(world)]


def different(world: int, unit: int) -> Sizes:
    return [[unit * ((3 * s + r) % world) for r in range(world)] for s in range(world)]


@distributed(*ALL_WORLDS)
def test_every_type() -> None:
    _, world = me()
    for dtype, count, layout, asynchronous in itertools.product(
        MOVABLE, small_counts(world), LAYOUTS, (False, True)
    ):
        exchange(dtype, equal(world, count), layout, asynchronous)


@distributed(*ALL_WORLDS)
def test_different_sizes() -> None:
    _, world = me()
    for unit, layout in itertools.product((1, 17, 30_011), LAYOUTS):
        exchange(torch.float32, different(world, unit), layout, False)
        exchange(torch.int64, different(world, unit), layout, True)


@distributed(2, 3, 7)
def test_only_one_pair_talks() -> None:
    _, world = me()
    sizes = equal(world, 0)
    sizes[0][world - 1] = 100_003
    exchange(torch.float32, sizes, LAYOUTS[0], False)


@distributed(*ALL_WORLDS)
def test_large() -> None:
    _, world = me()
    exchange(torch.float32, equal(world, LARGE // world), LAYOUTS[0], True)
    exchange(torch.uint8, equal(world, (5 << 20) // world), LAYOUTS[0], False)


@distributed(2, 3)
def test_rows_without_splits() -> None:
    rank, world = me()
    whole = values(rank, 2 * world * 5, torch.float32).reshape(2 * world, 5)
    output = torch.empty_like(whole)
    dist.all_to_all_single(output, whole)
    for peer in range(world):
        theirs = values(peer, 2 * world * 5, torch.float32).reshape(world, 2, 5)
        check(output[2 * peer : 2 * peer + 2], theirs[rank], f"from {peer}")


@distributed(2, 3, 4)
def test_without_splits() -> None:
    """Over several hosts small blocks of a host go together, and large ones straight."""
    rank, world = me()
    for count, dtype in itertools.product((0, 1, 3, 100, 5000, 70_001), (torch.int32, torch.uint8)):
        whole = values(rank, world * count, dtype)
        output = torch.zeros_like(whole)
        dist.all_to_all_single(output, whole)
        for peer, part in enumerate(output.split(count) if count else []):
            theirs = values(peer, world * count, dtype).split(count)
            check(part, theirs[rank], count, dtype, f"from {peer}")


@distributed(3, fresh=True, gloo_lacks="does not compare")
def test_splits_on_one_rank_only() -> None:
    """They would be taken for blocks of any size, of which the others speak as equal ones."""
    rank, world = me()
    splits = [2] * world if rank == 1 else None
    with pytest.raises(RuntimeError, match="in equal blocks"):
        dist.all_to_all_single(torch.zeros(2 * world), torch.ones(2 * world), splits, splits)
