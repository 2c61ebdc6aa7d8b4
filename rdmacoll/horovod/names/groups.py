"""Groups of the engine for a set of ranks: one for operations by name, more for gradients.

They meet in a Store, under keys that no other group has; torch's default group is neither needed
nor made. Floor: rdmacoll/horovod/names. Thread: any.
"""

import datetime
import os
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from rdmacoll._agent import own_agent
from rdmacoll._extension import extension

if TYPE_CHECKING:
    from rdmacoll._C import RdmaBackend

    from .native import NamedGroup

# How long an operation may take once all ranks have submitted it: torch's own limit.
TIMEOUT = datetime.timedelta(minutes=30)


class Meeting:
    """Where ranks of a job meet: its Store, this rank's number and how many there are."""

    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        self.store = store
        self.rank = rank
        self.size = size

    @staticmethod
    def of_job() -> "Meeting":
        """By torch's default group if there is one, else by the environment; else alone."""
        if dist.is_initialized():
            store = dist.distributed_c10d._get_default_store()
            return Meeting(store, dist.get_rank(), dist.get_world_size())
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return Meeting(dist.HashStore(), 0, 1)
        store, rank, size = next(iter(dist.rendezvous("env://")))
        return Meeting(store, rank, size)

    def backend(self, name: str, ranks: list[int]) -> "RdmaBackend":
        """A group of these ranks of the job; all of them call it, with a name never used before."""
        module = extension()
        options: Any = module.Options()
        options._timeout = TIMEOUT
        options.group_name = name
        options.global_ranks_in_group = ranks
        agent = own_agent()
        return module.create(
            dist.PrefixStore(f"rdmacoll/horovod/{name}", self.store),
            ranks.index(self.rank),
            len(ranks),
            options,
            agent.address if agent is not None else "",
            False,
        )

    def named_group(self, name: str, ranks: list[int]) -> "NamedGroup":
        """The same, for operations by name."""
        tensors = self.backend(f"{name}/tensors", ranks)
        group: NamedGroup = extension().NamedGroup(tensors, self.backend(f"{name}/names", ranks))
        return group
