"""RDMACOLL_DETERMINISTIC: the bits of a reduction follow from what the ranks contribute alone, not
from the algorithm, nor from where in a tensor or bucket an element lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed

import rdmacoll

LACKS = "has no such mode"
NAMES = ("auto", "ring", "tree", "halving_doubling", "one_shot", "two_shot", "direct")
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
OPS = (dist.ReduceOp.SUM, dist.ReduceOp.AVG)
ELEMENTS = 70_001  # some hundred KiB, ragged, and more than a tile where block_bytes is small


def drawn(rank: int, dtype: torch.dtype) -> torch.Tensor:
    """Of very different sizes, so that sums in another order round otherwise."""
    generator = torch.Generator().manual_seed(rank)
    exponents = torch.randint(-6, 6, (ELEMENTS,), generator=generator)
    return (torch.randn(ELEMENTS, generator=generator) * 2.0**exponents).to(dtype)


def folded(world: int, dtype: torch.dtype, op: Any) -> torch.Tensor:
    """Rank 0's contribution first, 16-bit floats in float32, rounded once."""
    wide = dtype if dtype == torch.float64 else torch.float32
    total = drawn(0, dtype).to(wide)
    for rank in range(1, world):
        total = total + drawn(rank, dtype).to(wide)
    return (total / world if op == dist.ReduceOp.AVG else total).to(dtype)


def in_parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """As another bucket size would cut it."""
    begin = 0
    for size in (1, 3, 1000, 17_003):
        yield tensor[begin : begin + size]
        begin += size
    yield tensor[begin:]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(torch.uint8)


@distributed(2, 3, 4, 7, init=False, gloo_lacks=LACKS)
def test_the_bits_are_those_of_rank_order() -> None:
    os.environ["RDMACOLL_DETERMINISTIC"] = "1"
    dist.init_process_group("rdma")
    rank, world = me()
    for name in NAMES:
        group = dist.new_group(pg_options=rdmacoll.Options(algorithm=name))
        for dtype in FLOATS:
            for op in OPS:
                expected = folded(world, dtype, op)
                whole, cut, reduced = (drawn(rank, dtype) for _ in range(3))
                dist.all_reduce(whole, op, group=group)
                assert torch.equal(bits(whole), bits(expected)), (name, dtype, op)
                for part in in_parts(cut):
                    dist.all_reduce(part, op, group=group)
                assert torch.equal(bits(cut), bits(expected)), (name, dtype, op, "in parts")
                dist.reduce(reduced, world - 1, op, group=group)
                if rank == world - 1:
                    assert torch.equal(bits(reduced), bits(expected)), (name, dtype, op, "reduce")
        dist.destroy_process_group(group)
    dist.destroy_process_group()


@distributed(2, 3, 4, init=False, gloo_lacks=LACKS)
def test_reduce_scatter_has_the_same_bits() -> None:
    os.environ["RDMACOLL_DETERMINISTIC"] = "1"
    dist.init_process_group("rdma")
    rank, world = me()
    share = ELEMENTS // world
    for name in ("auto", "ring", "direct"):
        group = dist.new_group(pg_options=rdmacoll.Options(algorithm=name))
        for dtype in FLOATS:
            mine = torch.empty(share, dtype=dtype)
            dist.reduce_scatter_tensor(mine, drawn(rank, dtype)[: share * world], group=group)
            expected = folded(world, dtype, dist.ReduceOp.SUM)[rank * share : (rank + 1) * share]
            assert torch.equal(bits(mine), bits(expected)), (name, dtype)
        dist.destroy_process_group(group)
    dist.destroy_process_group()


@distributed(3, gloo_lacks=LACKS)
def test_without_it_they_follow_the_algorithm() -> None:
    """So the tests above can fail."""
    rank, world = me()
    group = dist.new_group(pg_options=rdmacoll.Options(algorithm="ring"))
    tensor = drawn(rank, torch.float32)
    dist.all_reduce(tensor, group=group)
    expected = folded(world, torch.float32, dist.ReduceOp.SUM)
    assert torch.allclose(tensor, expected, atol=1e-3)
    assert not torch.equal(bits(tensor), bits(expected))
    dist.destroy_process_group(group)


@distributed(2, init=False, gloo_lacks=LACKS)
def test_ranks_must_agree() -> None:
    os.environ["RDMACOLL_DETERMINISTIC"] = os.environ["RANK"]
    with pytest.raises(RuntimeError, match="another RDMACOLL_DETERMINISTIC"):
        dist.init_process_group("rdma")
