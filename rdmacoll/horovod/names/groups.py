"""Groups of the engine for a set of ranks: one for operations by name, more for gradients.

They meet in a Store, under keys that no other group has; torch's default group is neither needed
nor made. Floor: rdmacoll/horovod/names. Thread: any.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from rdmacoll._agent import own_agent
from rdmacoll._extension import extension
from rdmacoll.elastic.loop import ADMIT_TIMEOUT
from rdmacoll.elastic.membership import role

from .elastic_job import current_job, take_part
from .limits import TIMEOUT

if TYPE_CHECKING:
    from rdmacoll._C import RdmaBackend

    from .native import NamedGroup


@dataclass
class Meeting:
    """Where ranks of a job meet: its Store, this rank's number, and all in the order of the world.

    name: of no other ranks that have met in this Store
    patience: so long the others may take to come
    """

    store: dist.Store
    rank: int
    ranks: list[int]
    name: str
    patience: timedelta = TIMEOUT

    @staticmethod
    def of_job() -> "Meeting":
        """By torch's default group if there is one, else by the environment; else alone.

        Of an elastic job: RuntimeError: a rank was lost meanwhile; StateLostError: see there.
        """
        if role() is not None and not dist.is_initialized():
            take_part()
        if (job := current_job()) is not None:
            ranks = job.ranks()  # all are here
            return Meeting(_default_store(), dist.get_rank(), ranks, job.name, ADMIT_TIMEOUT)
        name = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        if dist.is_initialized():
            everyone = list(range(dist.get_world_size()))
            return Meeting(_default_store(), dist.get_rank(), everyone, name)
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return Meeting(dist.HashStore(), 0, [0], name)
        store, rank, size = next(iter(dist.rendezvous("env://")))
        return Meeting(store, rank, list(range(size)), name)

    def backend(self, name: str, ranks: list[int]) -> "RdmaBackend":
        """A group of these ranks of the job; all of them call it, with a name never used before."""
        module = extension()
        options: Any = module.Options()
        options._timeout = self.patience
        options.group_name = name
        options.global_ranks_in_group = ranks
        agent = own_agent()
        backend = module.create(
            dist.PrefixStore(f"rdmacoll/horovod/{name}", self.store),
            ranks.index(self.rank),
            len(ranks),
            options,
            agent.address if agent is not None else "",
            False,
        )
        backend.set_timeout(TIMEOUT)
        return backend

    def named_group(self, name: str, ranks: list[int]) -> "NamedGroup":
        """The same, for operations by name."""
        tensors = self.backend(f"{name}/tensors", ranks)
        group: NamedGroup = extension().NamedGroup(tensors, self.backend(f"{name}/names", ranks))
        return group


def _default_store() -> dist.Store:
    return dist.distributed_c10d._get_default_store()
