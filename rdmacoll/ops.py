"""Collectives as operators: importing this makes torch.ops.rdmacoll known. docs/OPERATORS.md.

    group = rdmacoll.ops.handle()
    torch.ops.rdmacoll.all_reduce_(tensor, group)

They block, are called by any thread, and go through torch.compile (fullgraph=True). They have no
derivative. What they raise is what torch.distributed raises in a group of the backend "rdma".
"""

import torch
import torch.distributed as dist
import torch.fx

from ._extension import extension
from .failure import backend_of

extension()  # has the operators


def handle(group: dist.ProcessGroup | None = None) -> int:
    """The number that names the group to operators, on this rank, while the group lives.

    group: None is the default group. Any thread; does not wait. The same number at each call, and
    never that of another group: operators on a destroyed one raise RuntimeError.
    Raises TypeError for a group of another backend.
    """
    return extension().handle_of(backend_of(group))


# A compiler keeps a call whose result this rank does not use: the other ranks wait for it.
for _name in (
    "all_reduce_",
    "broadcast_",
    "all_gather_into",
    "reduce_scatter_into",
    "all_to_all_into",
):
    torch.fx.has_side_effect(getattr(torch.ops.rdmacoll, _name).default)
