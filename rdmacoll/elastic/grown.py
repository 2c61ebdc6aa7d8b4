"""A group with joiners in it: made beside the old one, which stays until all have decided."""

import datetime
from typing import TYPE_CHECKING

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from .._agent import own_agent
from .._extension import extension
from ..failure import take_place

if TYPE_CHECKING:
    from .._C import RdmaBackend


def make_backend(
    store: dist.Store, generation: int, rank: int, size: int, timeout: datetime.timedelta
) -> "RdmaBackend":
    """All who are to be in it call it; RuntimeError if not all come within the timeout."""
    options = extension().Options(timeout)
    options.group_name = _name(generation)
    options.global_ranks_in_group = list(range(size))
    agent = own_agent()  # it knows the job's secret
    address = agent.address if agent is not None else ""
    backend: RdmaBackend = extension().create(store, rank, size, options, address, False)
    return backend


def put_in_place(
    backend: "RdmaBackend", store: dist.Store, generation: int, timeout: datetime.timedelta
) -> None:
    """It is the default group from now on, with this timeout for its operations."""
    backend.set_timeout(timeout)
    take_place(c10d._get_default_group(), backend, _name(generation), store)


def _name(generation: int) -> str:
    return f"elastic{generation}"
