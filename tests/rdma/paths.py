"""Over what the ranks of this job must reach each other, and whether they do.

Ranks of one host by shared memory, of different hosts by verbs, and all by verbs where
RDMACOLL_TRANSPORT=verbs says so. Every rank calls it, in the world's group.
"""

from __future__ import annotations

import os
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


def hosts_by_rank() -> tuple[list[str], list[str]]:
    """What the engine takes for their hosts, and their boot ids."""
    boot_id = BOOT_ID.read_text().strip()
    mine = (os.environ.get("RDMACOLL_HOST_ID") or boot_id, boot_id)
    everyones: list[tuple[str, str]] = [mine] * dist.get_world_size()
    dist.all_gather_object(everyones, mine)
    return [host for host, _ in everyones], [boot_id for _, boot_id in everyones]


def check_paths(hosts: list[str]) -> str:
    """AssertionError if a peer is reached in another way; else what this rank uses, in a line."""
    rank = dist.get_rank()
    forced = os.environ.get("RDMACOLL_TRANSPORT") == "verbs"
    expected = {
        peer: "shm" if host == hosts[rank] and not forced else "verbs"
        for peer, host in enumerate(hosts)
        if peer != rank
    }
    paths = backend()._paths()
    found = {peer: transport for peer, transport, _ in paths}
    assert found == expected, f"rank {rank} has the paths {paths}, not {expected}"
    return ", ".join(f"{transport} to {peer}" for peer, transport in found.items())
