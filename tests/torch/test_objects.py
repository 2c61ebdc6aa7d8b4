"""Collectives of Python objects of different sizes."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from cases import me
from harness import ALL_WORLDS, distributed


def something(rank: int) -> dict[str, Any]:
    return {"rank": rank, "text": "x" * (rank * 3000), "list": list(range(rank))}


@distributed(*ALL_WORLDS)
def test_all_gather_object() -> None:
    rank, world = me()
    objects: list[Any] = [None] * world
    dist.all_gather_object(objects, something(rank))
    assert objects == [something(peer) for peer in range(world)]


@distributed(*ALL_WORLDS)
def test_gather_object() -> None:
    rank, world = me()
    for root in {0, world - 1}:
        objects: list[Any] | None = [None] * world if rank == root else None
        dist.gather_object(something(rank), objects, root)
        if objects is not None:
            assert objects == [something(peer) for peer in range(world)]


@distributed(*ALL_WORLDS)
def test_broadcast_object_list() -> None:
    rank, world = me()
    for root in {0, world - 1}:
        objects = [something(root), None, 7] if rank == root else [None] * 3
        dist.broadcast_object_list(objects, root)
        assert objects == [something(root), None, 7]


@distributed(*ALL_WORLDS)
def test_scatter_object_list() -> None:
    rank, world = me()
    for root in {0, world - 1}:
        inputs = [something(peer) for peer in range(world)] if rank == root else None
        output: list[Any] = [None]
        dist.scatter_object_list(output, inputs, root)
        assert output == [something(rank)]


@distributed(2, 3)
def test_send_object_list() -> None:
    rank, world = me()
    if rank == 0:
        dist.send_object_list([something(5), "end"], world - 1)
    elif rank == world - 1:
        objects: list[Any] = [None, None]
        assert dist.recv_object_list(objects, 0) == 0
        assert objects == [something(5), "end"]


@distributed(2)
def test_tensors_inside() -> None:
    rank, world = me()
    objects: list[Any] = [None] * world
    dist.all_gather_object(objects, {"weights": torch.full((rank + 1, 3), float(rank))})
    for peer, received in enumerate(objects):
        assert torch.equal(received["weights"], torch.full((peer + 1, 3), float(peer)))
