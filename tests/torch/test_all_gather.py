"""all_gather in its forms: a list, one tensor, in place (FSDP), different sizes per rank."""

from __future__ import annotations

import itertools

import torch
import torch.distributed as dist
from cases import (
    LARGE,
    LAYOUTS,
    MOVABLE,
    Layout,
    check,
    done,
    lacks,
    me,
    same_bits,
    small_counts,
    values,
)
from harness import ALL_WORLDS, distributed


def blank(count: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(count).to(dtype)


def into_list(dtype: torch.dtype, count: int, layout: Layout, asynchronous: bool) -> None:
    rank, world = me()
    outputs = [layout(blank(count, dtype)) for _ in range(world)]
    own = layout(values(rank, count, dtype))
    done(dist.all_gather(outputs, own, async_op=asynchronous))
    for peer, output in enumerate(outputs):
        check(output, values(peer, count, dtype), dtype, count, layout.__name__, f"from {peer}")


def into_tensor(dtype: torch.dtype, count: int, layout: Layout, asynchronous: bool) -> None:
    rank, world = me()
    output = layout(blank(world * count, dtype))
    own = layout(values(rank, count, dtype))
    done(dist.all_gather_into_tensor(output, own, async_op=asynchronous))
    for peer in range(world):
        part = output[peer * count : (peer + 1) * count]
        check(part, values(peer, count, dtype), dtype, count, layout.__name__, f"from {peer}")


@distributed(*ALL_WORLDS)
def test_every_type() -> None:
    _, world = me()
    for dtype, count, layout, asynchronous in itertools.product(
        MOVABLE, small_counts(world), LAYOUTS, (False, True)
    ):
        if not lacks("all_gather", dtype, layout=layout):
            into_list(dtype, count, layout, asynchronous)
            into_tensor(dtype, count, layout, asynchronous)


@distributed(*ALL_WORLDS)
def test_large() -> None:
    for layout in LAYOUTS:
        into_list(torch.float32, LARGE, layout, False)
        into_tensor(torch.float32, LARGE // 3, layout, True)
    into_tensor(torch.uint8, 5 << 20, LAYOUTS[0], False)


@distributed(2, 3)
def test_large_every_type() -> None:
    for dtype in MOVABLE:
        if not lacks("all_gather", dtype):
            into_list(dtype, LARGE // 4, LAYOUTS[0], True)


@distributed(*ALL_WORLDS, gloo_lacks="wants the output as one row of the inputs")
def test_stacked_shape() -> None:
    rank, world = me()
    output = torch.empty(world, 2, 3)
    dist.all_gather_into_tensor(output, values(rank, 6, torch.float32).reshape(2, 3))
    for peer in range(world):
        check(output[peer], values(peer, 6, torch.float32).reshape(2, 3), f"from {peer}")


@distributed(*ALL_WORLDS)
def test_in_place() -> None:
    rank, world = me()
    for count in (0, 1, 1021, 100_003):
        output = torch.zeros(world * count)
        own = output[rank * count : (rank + 1) * count]
        own.copy_(values(rank, count, torch.float32))
        dist.all_gather_into_tensor(output, own)
        expected = torch.cat([values(peer, count, torch.float32) for peer in range(world)])
        check(output, expected, count)


@distributed(2, 3, 4, 7, gloo_lacks="needs equal sizes")
def test_different_sizes() -> None:
    rank, world = me()
    for unit in (0, 1, 1021, 50_001):
        counts = [unit * ((peer + 1) % world) for peer in range(world)]
        outputs = [torch.zeros(count) for count in counts]
        dist.all_gather(outputs, values(rank, counts[rank], torch.float32))
        for peer, output in enumerate(outputs):
            check(output, values(peer, counts[peer], torch.float32), counts, f"from {peer}")


@distributed(2, 3)
def test_different_shapes_of_one_size() -> None:
    rank, world = me()
    outputs = [torch.zeros(2, 6) for _ in range(world)]
    dist.all_gather(outputs, values(rank, 12, torch.float32).reshape(2, 6))
    assert all(
        same_bits(output, values(peer, 12, torch.float32).reshape(2, 6))
        for peer, output in enumerate(outputs)
    )


@distributed(2)
def test_backward() -> None:
    from torch.distributed.nn.functional import all_gather

    rank, world = me()
    own = torch.full((3,), float(rank), requires_grad=True)
    parts = all_gather(own)
    sum((peer + 1) * part.sum() for peer, part in enumerate(parts)).backward()
    assert own.grad is not None
    assert own.grad.tolist() == [float(world * (rank + 1))] * 3
