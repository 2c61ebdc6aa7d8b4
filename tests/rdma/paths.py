"""Over what the ranks of this job must reach each other, and whether they do.

Ranks of one host by shared memory, of different hosts by verbs where both have a device and by tcp
where one hides its own, and all by verbs where RDMACOLL_TRANSPORT=verbs says so. Every rank calls
it, in the world's group.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def backend() -> Any:
    """Of the world's group, with the bindings that torch does not know."""
    world = dist.group.WORLD
    assert world is not None
    return world._get_backend(torch.device("cpu"))


@dataclass(frozen=True)
class Place:
    host: str  # what the engine takes for it
    has_device: bool = True
    boot_id: str = ""


NO_DEVICE = {"RDMACOLL_HCA": "none"}


def places_by_rank() -> list[Place]:
    boot_id = BOOT_ID.read_text().strip()
    hides_it = os.environ.get("RDMACOLL_HCA") == NO_DEVICE["RDMACOLL_HCA"]
    mine = Place(os.environ.get("RDMACOLL_HOST_ID") or boot_id, not hides_it, boot_id)
    everyones = [mine] * dist.get_world_size()
    dist.all_gather_object(everyones, mine)
    return everyones


def way(one: Place, other: Place) -> str:
    """The transport between the two."""
    if os.environ.get("RDMACOLL_TRANSPORT") == "verbs":
        return "verbs"
    if one.host == other.host:
        return "shm"
    return "verbs" if one.has_device and other.has_device else "tcp"


def check_paths(places: list[Place]) -> str:
    """AssertionError if a peer is reached in another way; else what this rank uses, in a line."""
    rank = dist.get_rank()
    expected = {peer: way(places[rank], place) for peer, place in enumerate(places) if peer != rank}
    paths = backend()._paths()
    found = {peer: transport for peer, transport, _ in paths}
    assert found == expected, f"rank {rank} has the paths {paths}, not {expected}"
    return ", ".join(f"{transport} to {peer}" for peer, transport in found.items())
