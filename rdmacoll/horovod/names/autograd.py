"""Operations that wait for their result, through which gradients flow back.

Floor: rdmacoll/horovod/names. Thread: any.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import Function

from . import operations as start
from . import ops
from .compression import Compression, Compressor
from .handles import synchronize
from .process_sets import ProcessSet, global_process_set

Factors = tuple[int, float, float, ProcessSet]  # op, prescale, postscale, of whom


class _AllReduce(Function):
    """Backward: the gradients of all ranks are reduced alike."""

    @staticmethod
    def forward(ctx: Any, name: str | None, factors: Factors, *tensors: torch.Tensor) -> Any:
        ctx.factors = factors
        op, prescale, postscale, process_set = factors
        if len(tensors) == 1:
            handle = start.allreduce_async(
                tensors[0], None, name, op, prescale, postscale, process_set
            )
            return synchronize(handle)
        handle = start.grouped_allreduce_async(
            tensors, None, name, op, prescale, postscale, process_set
        )
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        reduced = _AllReduce.apply(None, ctx.factors, *gradients)
        return (None, None, *(reduced if len(gradients) > 1 else (reduced,)))


def _reduced(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    compression: type[Compressor],
    factors: Factors,
) -> list[torch.Tensor]:
    sent = [compression.compress(tensor) for tensor in tensors]
    reduced = _AllReduce.apply(name, factors, *(tensor for tensor, _ in sent))
    came = [reduced] if len(sent) == 1 else list(reduced)
    return [
        compression.decompress(tensor, ctx) for tensor, (_, ctx) in zip(came, sent, strict=True)
    ]


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The tensors of all ranks, averaged or as op says, as a new tensor. See allreduce_async()."""
    factors = (ops.chosen(op, average), prescale_factor, postscale_factor, process_set)
    return _reduced([tensor], name, compression, factors)[0]


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The same in place; no gradient flows back through it."""
    result: torch.Tensor = synchronize(
        start.allreduce_async_(
            tensor, average, name, op, prescale_factor, postscale_factor, process_set
        )
    )
    return result


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Several tensors as one operation."""
    factors = (ops.chosen(op, average), prescale_factor, postscale_factor, process_set)
    return _reduced(tensors, name, compression, factors)


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """The same in place; no gradient flows back through it."""
    result: list[torch.Tensor] = synchronize(
        start.grouped_allreduce_async_(
            tensors, average, name, op, prescale_factor, postscale_factor, process_set
        )
    )
    return result


class _AllGather(Function):
    """Backward: the average of all ranks' gradients, of which each takes its rows."""

    @staticmethod
    def forward(
        ctx: Any, name: str | None, process_set: ProcessSet, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        handle = start.grouped_allgather_async(tensors, name, process_set)
        ctx.process_set = process_set
        ctx.rows = [tensor.shape[0] for tensor in tensors]
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        rows = torch.tensor([ctx.rows])
        everyones = synchronize(start.allgather_async(rows, None, ctx.process_set))
        own = ctx.process_set.rank()
        own_gradients = []
        for i, gradient in enumerate(gradients):
            averaged = allreduce(gradient, process_set=ctx.process_set)
            first = int(everyones[:own, i].sum())
            own_gradients.append(averaged.narrow(0, first, ctx.rows[i]))
        return (None, None, *own_gradients)


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The rows of all ranks, one rank's behind the other's. See allgather_async()."""
    return grouped_allgather([tensor], name, process_set)[0]


def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Several tensors as one operation."""
    return list(_AllGather.apply(name, process_set, *tensors))


class _Broadcast(Function):
    """Backward: the average of all ranks' gradients at the root, zeros elsewhere."""

    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, root_rank: int, name: str | None, process_set: ProcessSet
    ) -> torch.Tensor:
        ctx.is_root = process_set.rank() == start.root_in(process_set, root_rank)
        ctx.process_set = process_set
        result: torch.Tensor = synchronize(
            start.broadcast_async(tensor, root_rank, name, process_set)
        )
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        averaged = allreduce(gradients[0], process_set=ctx.process_set)
        return averaged if ctx.is_root else averaged * 0, None, None, None


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The root's tensor, as a new one. root_rank: its number in the world."""
    result: torch.Tensor = _Broadcast.apply(tensor, root_rank, name, process_set)
    return result


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The same in place; no gradient flows back through it."""
    result: torch.Tensor = synchronize(start.broadcast_async_(tensor, root_rank, name, process_set))
    return result


class _AllToAll(Function):
    """Backward: every row goes back where it came from."""

    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, splits: Any, name: str | None, process_set: ProcessSet
    ) -> tuple[torch.Tensor, torch.Tensor]:
        counts = start.alltoall_splits(tensor, splits, process_set)
        output, received = synchronize(start.alltoall_async(tensor, counts, name, process_set))
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        came_back, _ = _AllToAll.apply(gradients[0], ctx.received, None, ctx.process_set)
        return came_back, None, None, None


def alltoall(
    tensor: torch.Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The rows that each rank has sent to this one; with splits, also how many. See
    alltoall_async()."""
    output, received = _AllToAll.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)


class _ReduceScatter(Function):
    """Backward: the gradients of all ranks' rows, times the number of ranks if rows were added."""

    @staticmethod
    def forward(ctx: Any, name: str | None, factors: Factors, *tensors: torch.Tensor) -> Any:
        ctx.factors = factors
        op, prescale, postscale, process_set = factors
        handle = start.grouped_reducescatter_async(
            tensors, name, op, process_set, prescale, postscale
        )
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        op, prescale, postscale, process_set = ctx.factors
        factor = prescale * postscale * (process_set.size() if op == ops.Sum else 1)
        gathered = grouped_allgather([g * factor for g in gradients], process_set=process_set)
        return (None, None, *gathered)


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = ops.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """This rank's rows of the reduced tensor. See reducescatter_async()."""
    return grouped_reducescatter(
        [tensor], name, compression, op, process_set, prescale_factor, postscale_factor
    )[0]


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = ops.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """Several tensors as one operation."""
    sent = [compression.compress(tensor) for tensor in tensors]
    factors = (op, prescale_factor, postscale_factor, process_set)
    came = _ReduceScatter.apply(name, factors, *(tensor for tensor, _ in sent))
    return [
        compression.decompress(tensor, ctx) for tensor, (_, ctx) in zip(came, sent, strict=True)
    ]
