"""What a program does when ranks have died: learn which, and go on in a group without them."""

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ._extension import extension

if TYPE_CHECKING:
    from ._C import RdmaBackend

CPU = torch.device("cpu")


class DeadRankError(dist.DistBackendError, dist.DistNetworkError):
    """An operation failed in a group that has lost ranks; `dead_ranks` are their ranks in it.

    They are dead, cannot be reached, or have left the group, as far as this rank knew by then: who
    only waits for others that wait for a dead one may not have heard of it. It is both of torch's
    errors, so that what catches either goes on to work.
    """

    def __init__(self, message: str, dead_ranks: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.dead_ranks = tuple(dead_ranks)


def dead_ranks(group: dist.ProcessGroup | None = None) -> tuple[int, ...]:
    """The ranks of the group that are gone, numbered as in the group, as far as this rank knows.

    For errors that are no DeadRankError, such as those that DistributedDataParallel passes on from
    its futures. group: None is the default group. Any thread; does not wait.
    Raises TypeError for a group of another backend.
    """
    return tuple(backend_of(group)._lost_ranks())


def shrink_group(
    ranks_to_exclude: Iterable[int] | None = None,
    group: dist.ProcessGroup | None = None,
    timeout: datetime.timedelta | None = None,
) -> dist.ProcessGroup:
    """Makes a group of the ranks of `group` that live, over the links that it has, failed or not.

    All that are to stay call it, and the new group is the same for all: who is gone is left out,
    and whom any of them names in ranks_to_exclude (ranks of `group`). It takes the place of
    `group`, which is destroyed; if that is the default group, all others are as well, and ranks are
    numbered anew. One thread of a rank calls it.

    timeout: of the call, and of the operations of the new group; None: the old group's.
    Raises RuntimeError for a rank that is not in the group or is this one, and if no smaller group
    could be made: it names the ranks that it waited for. A call that timed out may be repeated.
    More in docs/ELASTIC.md.
    """
    old = c10d._get_default_group() if group is None else group
    excluded = sorted(set(ranks_to_exclude or ()))
    options = extension().Options(timeout) if timeout is not None else None
    backend = backend_of(old).shrink(excluded, c10d.SHRINK_DEFAULT, options)
    name = f"{c10d._world.pg_names[old]}:shrunk"
    return take_place(old, backend, name, c10d._world.pg_map[old][1])


def backend_of(group: dist.ProcessGroup | None) -> "RdmaBackend":
    """The backend rdma of the group; None: of the default group. TypeError if it has another."""
    group = c10d._get_default_group() if group is None else group
    if not isinstance(group, dist.ProcessGroup):  # new_group gives ranks outside a number
        raise TypeError(f"group={group!r} is no group that this rank is in; give one that it is in")
    backend = group._get_backend(CPU)
    if not isinstance(backend, extension().RdmaBackend):
        raise TypeError(f"group is of the backend {backend.name()!r}; this is for groups of 'rdma'")
    return backend


# As torch's shrink_group does it, but for three things. That registers the backend as gloo, and DDP
# then reads a gloo object that is none; it opens the store anew, which may have died with its rank;
# and in a default group it keeps the old numbers of ranks beside new ones.
def take_place(
    old: dist.ProcessGroup, backend: "RdmaBackend", name: str, parent_store: dist.Store
) -> dist.ProcessGroup:
    """Puts a group with this backend in the place of `old`, which is destroyed."""
    is_default = old == c10d._get_default_group()
    backend_name, _ = c10d._world.pg_map[old]
    backend_config = c10d._world.pg_backend_config[old]
    name = c10d.GroupName(name)
    if is_default:
        c10d._destroy_all_other_groups(exclude_group=old)
    c10d._cleanup_original_group(old, is_default)

    store = dist.PrefixStore(f"{name}/", parent_store)
    new = dist.ProcessGroup(store, backend.rank(), backend.size())
    new._register_backend(CPU, dist.ProcessGroup.BackendType.CUSTOM, backend)
    new._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
    new._set_group_name(name)
    new._set_group_desc(f"default:{name}" if is_default else name)
    if is_default:
        c10d._update_default_pg(new)
    members = range(backend.size()) if is_default else backend.options.global_ranks_in_group
    c10d._register_pg_in_world(
        pg=new,
        backend_name=backend_name,
        store=store,
        group_name=name,
        backend_config=backend_config,
        rank_mapping={member: rank for rank, member in enumerate(members)},
    )
    return new
