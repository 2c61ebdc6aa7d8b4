"""A group of this process alone, of which torch.distributed does not know: for a process that
reaches others by their addresses, or is reached by its own, and meets nobody in a group.

Floor: rdmacoll/. Thread: any.
"""

from types import SimpleNamespace

import torch.distributed as dist

from ._create import create
from .failure import CPU


def group_alone(store: dist.Store, name: str) -> dist.ProcessGroup:
    """store: where its secret is, if the environment names none. Errors: as of a group's making."""
    asked = SimpleNamespace(
        store=store,
        group_rank=0,
        group_size=1,
        group_id=name,
        global_ranks_in_group=[0],
        timeout=dist.distributed_c10d.default_pg_timeout,
    )
    group = dist.ProcessGroup(store, 0, 1)
    group._register_backend(CPU, dist.ProcessGroup.BackendType.CUSTOM, create(asked, None))
    return group
