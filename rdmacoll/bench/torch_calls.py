"""The operations as calls of torch.distributed, on whatever backend the group has."""

from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from .case import Case
from .frame.job import ROOT

Call = Callable[[], object]

# torch 2.13 has renamed these two, and warns of the old names.
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def torch_call(case: Case, group: dist.ProcessGroup, reduction: str) -> Call:
    """`group` holds all ranks in their order."""
    op: Any = getattr(dist.ReduceOp, reduction.upper())
    one, out = case.input, case.output
    at_root = case.place.rank == ROOT
    match case.operation:
        case "all_reduce":
            return lambda: dist.all_reduce(one, op, group=group)
        case "broadcast":
            return lambda: dist.broadcast(one, ROOT, group=group)
        case "reduce":
            return lambda: dist.reduce(one, ROOT, op, group=group)
        case "all_gather":
            return lambda: _all_gather(out, one, group=group)
        case "reduce_scatter":
            return lambda: _reduce_scatter(out, one, op, group=group)
        case "all_to_all":
            return lambda: dist.all_to_all_single(out, one, group=group)
        case "gather":
            parts = list(out.split(case.part)) if at_root else None
            return lambda: dist.gather(one, parts, ROOT, group=group)
        case "scatter":
            parts = list(one.split(case.part)) if at_root else None
            return lambda: dist.scatter(out, parts, ROOT, group=group)
        case "send_recv":
            return lambda: _exchange(case, group)
        case "barrier":
            return lambda: dist.barrier(group=group)
    raise AssertionError(case.operation)


def _exchange(case: Case, group: dist.ProcessGroup) -> None:
    """To the next rank and from the one before, as nccl-tests' sendrecv."""
    rank, ranks = case.place.rank, case.place.ranks
    receiving = dist.irecv(case.output, (rank - 1) % ranks, group=group)
    sending = dist.isend(case.input, (rank + 1) % ranks, group=group)
    assert sending is not None and receiving is not None
    sending.wait()
    receiving.wait()
