"""create_process_group(): a group that torch.distributed does not list, for who makes groups of
their own: torchft, say, which makes another one whenever replicas come or go.

Floor: rdmacoll/. Thread: any.
"""

import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import torch.distributed as dist

from ._create import create
from .failure import CPU

if TYPE_CHECKING:
    from ._C import Options


def create_process_group(
    store: dist.Store,
    rank: int,
    world_size: int,
    timeout: datetime.timedelta | None = None,
    *,
    name: str = "",
    options: "Options | None" = None,
) -> dist.ProcessGroup:
    """A group of these ranks, which all call it; its operations are methods of the ProcessGroup.

    It is neither the default group nor known to torch's functions, so there may be many, one after
    another, in a process that has no other group. abort() ends it. Then another one may be made.

    store: where its ranks meet, and they alone: a new prefix for each group. The secret is drawn
        there if neither rdmarun nor RDMACOLL_SECRET_FILE has brought one.
    timeout: of its operations, and of the meeting; None: torch's default of half an hour.
    name: what errors and records call it.
    options: rdmacoll.Options; their timeout is replaced by `timeout`.

    Raises ValueError for ranks that cannot be, TypeError for other options, DistBackendError
    if the others do not come.
    """
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(f"rank={rank}, world_size={world_size}: give a rank from 0 to its size-1")
    asked = SimpleNamespace(
        store=store,
        group_rank=rank,
        group_size=world_size,
        group_id=name or "own",
        global_ranks_in_group=list(range(world_size)),
        timeout=timeout or dist.distributed_c10d.default_pg_timeout,
    )
    group = dist.ProcessGroup(store, rank, world_size)
    backend = create(asked, options)
    group._register_backend(CPU, dist.ProcessGroup.BackendType.CUSTOM, backend)
    group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
    group._set_group_name(dist.distributed_c10d.GroupName(asked.group_id))
    return group
