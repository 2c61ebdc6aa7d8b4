"""A group of this process alone, for a process that is in no group of the backend rdma."""

from __future__ import annotations

import functools
import os

import torch.distributed as dist

from ..._agent import own_agent
from ...failure import CPU
from ...process_group import create_process_group


def default_group_or_own() -> dist.ProcessGroup:
    """The default group, if its backend is rdma; else a group of this process alone, always one.

    Others reach that by address, if they know its secret. Raises ValueError where they cannot.
    """
    if dist.is_initialized():
        default = dist.distributed_c10d._get_default_group()
        if default._get_backend(CPU).name() == "rdma":
            return default
    return _own_group()


@functools.cache
def _own_group() -> dist.ProcessGroup:
    if own_agent() is None and not os.environ.get("RDMACOLL_SECRET_FILE"):
        raise ValueError(
            "there is no default group of the backend rdma, and no secret that the peer could "
            'know: call init_process_group(backend="rdma") on both sides, start both with rdmarun, '
            "or name the same file in RDMACOLL_SECRET_FILE"
        )
    return create_process_group(dist.HashStore(), 0, 1, name="alone")
