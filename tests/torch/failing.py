"""For tests of ranks that do not come: how long they stay away."""

from __future__ import annotations

import time

import torch.distributed as dist

_KEY = "raised"


def raised() -> None:
    """This rank has seen the error it waited for."""
    dist.distributed_c10d._get_default_store().add(_KEY, 1)


def stay_away(absent: int = 1) -> None:
    """Until all ranks but the absent ones have raised."""
    store = dist.distributed_c10d._get_default_store()
    while store.add(_KEY, 0) < dist.get_world_size() - absent:
        time.sleep(0.02)
