"""Makes each kind of operation as a user does, by a call of torch.distributed.

Not here: what goes in and what must come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch.distributed as dist
from program import PREMUL, PREMUL_FACTOR, Op
from torch import Tensor
from torch.distributed.distributed_c10d import _coalescing_manager

Tensors = list[Tensor]
# Each is waited for: a Work, or the manager of coalesced operations.
Works = list[Any]


class Call(Protocol):
    def __call__(
        self, op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool
    ) -> Any: ...


def reduction(op: Op) -> Any:
    if op.reduce == PREMUL:
        return dist._make_nccl_premul_sum(PREMUL_FACTOR)
    return getattr(dist.ReduceOp, op.reduce)


def _root(op: Op) -> int:
    return op.group.ranks[op.root]


def _broadcast(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.broadcast(outs[0], _root(op), group, asynchronous)


def _all_reduce(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.all_reduce(outs[0], reduction(op), group, asynchronous)


def _slices(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return [dist.all_reduce(part, reduction(op), group, asynchronous) for part in outs]


def _reduce(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.reduce(outs[0], _root(op), reduction(op), group, asynchronous)


def _all_gather(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.all_gather(outs, ins[0], group, asynchronous)


def _all_gather_into(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.all_gather_into_tensor(outs[0], ins[0], group, asynchronous)


def _gather(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.gather(ins[0], outs or None, _root(op), group, asynchronous)


def _scatter(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.scatter(outs[0], ins or None, _root(op), group, asynchronous)


def _reduce_scatter(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.reduce_scatter(outs[0], ins, reduction(op), group, asynchronous)


def _reduce_scatter_tensor(
    op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool
) -> Any:
    return dist.reduce_scatter_tensor(outs[0], ins[0], reduction(op), group, asynchronous)


def _all_to_all(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.all_to_all(outs, ins, group, asynchronous)


def _all_to_all_single(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    me = dist.get_rank(group)
    sent, received = op.matrix[me], op.column(me)
    splits: tuple[Any, Any] = (list(received), list(sent))
    if op.wide:  # equal splits need not be said
        splits = (None, None)
    return dist.all_to_all_single(outs[0], ins[0], *splits, group, asynchronous)


def _barrier(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
    return dist.barrier(group, asynchronous)


def _all_reduce_coalesced(
    op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool
) -> Any:
    return dist.all_reduce_coalesced(outs, reduction(op), group, asynchronous)


def _all_gather_coalesced(
    op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool
) -> Any:
    per_rank = len(op.counts)
    lists = [outs[at : at + per_rank] for at in range(0, len(outs), per_rank)]
    return dist.all_gather_coalesced(lists, ins, group, asynchronous)


def _all_gather_into_coalesced(
    op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool
) -> Any:
    work = group.allgather_into_tensor_coalesced(outs, ins)
    return work if asynchronous else work.wait() and None


def _reduce_scatter_tensor_coalesced(
    op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool
) -> Any:
    options = dist.ReduceScatterOptions()
    options.reduceOp = reduction(op)
    work = group.reduce_scatter_tensor_coalesced(outs, ins, options)
    return work if asynchronous else work.wait() and None


def _managed(each: Callable[[Op, Any, Tensor, Tensor], Any]) -> Call:
    def call(op: Op, group: Any, ins: Tensors, outs: Tensors, asynchronous: bool) -> Any:
        with _coalescing_manager(group, async_ops=asynchronous) as manager:
            for into, output in zip(ins or outs, outs, strict=True):
                each(op, group, into, output)
        return manager if asynchronous else None

    return call


CALLS: dict[str, Call] = {
    "broadcast": _broadcast,
    "all_reduce": _all_reduce,
    "slices": _slices,
    "reduce": _reduce,
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into,
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
    "all_to_all": _all_to_all,
    "all_to_all_single": _all_to_all_single,
    "barrier": _barrier,
    "all_reduce_coalesced": _all_reduce_coalesced,
    "all_gather_coalesced": _all_gather_coalesced,
    "all_gather_into_tensor_coalesced": _all_gather_into_coalesced,
    "reduce_scatter_tensor_coalesced": _reduce_scatter_tensor_coalesced,
    "manager_all_reduce": _managed(
        lambda op, group, _, output: dist.all_reduce(output, reduction(op), group)
    ),
    "manager_all_gather": _managed(
        lambda _, group, given, output: dist.all_gather_into_tensor(output, given, group)
    ),
    "manager_reduce_scatter": _managed(
        lambda op, group, given, output: dist.reduce_scatter_tensor(
            output, given, reduction(op), group
        )
    ),
}

# For these torch gives a future or a manager, which can only be waited for.
ONLY_WAITED_FOR = (
    "all_reduce_coalesced",
    "all_gather_coalesced",
    *[kind for kind in CALLS if kind.startswith("manager_")],
)


# A message's number, and whether this rank sends it, or receives it.
End = tuple[int, bool]


def exchange(
    op: Op, group: Any, ends: Sequence[End], tensors: Sequence[Tensor], batched: bool
) -> Works:
    """Starts the sends and receives in this order."""
    calls = [
        dist.P2POp(dist.isend if end[1] else dist.irecv, tensor, peer(op, end), group, tag(op, end))
        for end, tensor in zip(ends, tensors, strict=True)
    ]
    if batched and calls:
        works: Works = dist.batch_isend_irecv(calls)
        return works
    return [call.op(call.tensor, call.peer, call.group, call.tag) for call in calls]


def peer(op: Op, end: End) -> int:
    """The rank of the world at the other end."""
    message = op.messages[end[0]]
    return op.group.ranks[message.destination if end[1] else message.source]


def tag(op: Op, end: End) -> int:
    return op.messages[end[0]].tag


def alone(op: Op, group: Any, end: End, tensor: Tensor) -> None:
    """Sends or receives one message by a blocking call."""
    if end[1]:
        dist.send(tensor, peer(op, end), group, tag(op, end))
    else:
        assert dist.recv(tensor, peer(op, end), group, tag(op, end)) == peer(op, end)
