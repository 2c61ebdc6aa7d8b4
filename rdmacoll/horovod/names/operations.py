"""Operations by name, each at once or in the background; none of them knows autograd.

What the ranks of a set submit under one name, in any order, is run as one operation, once all have
submitted it and what they have submitted agrees: else all of them get a HorovodInternalError, and
nothing has moved. Without a name the operations of a kind are counted.
Floor: rdmacoll/horovod/names. Thread: any.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from rdmacoll._extension import extension

from . import adasum, ops, timeline
from .handles import Result, check_name, new_handle, synchronize
from .process_sets import ProcessSet, global_process_set, state_of

if TYPE_CHECKING:
    from .native import NamedWork

Tensors = list[torch.Tensor]


def submit(
    kind: str,
    name: str | None,
    process_set: ProcessSet,
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor] = (),
    *,
    result: Result,
    op: int = ops.Sum,
    prescale: float = 1.0,
    postscale: float = 1.0,
    root: int = 0,
    splits: Sequence[int] = (),
) -> int:
    """A handle. result: what it gives once the operation has ended.

    Raises ValueError for a name that is in flight, RuntimeError for tensors that are not dense or
    not on the CPU, or are written and overlap themselves.
    """
    state = state_of(process_set)
    assert state.group is not None
    module = extension()
    prefix = kind.lower()
    own_name = state.next_name(prefix) if name is None else f"{prefix}.{name}"
    key = f"{state.name}/{own_name}"
    check_name(key)
    work = state.group.submit(
        getattr(module.NamedKind, kind),
        own_name,
        name is not None,
        list(inputs),
        list(outputs),
        getattr(module.NamedOp, ops.NAMES[op]),
        prescale,
        postscale,
        root,
        list(splits),
    )
    if timeline.is_on():
        timeline.note(state, kind, own_name, name is not None, inputs or outputs, work.times())
    return new_handle(work, result, key)


def _data_of(tensor: torch.Tensor) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"the tensor is a {type(tensor).__name__}; give a torch.Tensor")
    return tensor.detach()


def _copy_of(tensor: torch.Tensor) -> torch.Tensor:
    return _data_of(tensor).clone(memory_format=torch.contiguous_format)


def _first(work: "NamedWork") -> torch.Tensor:
    return work.outputs()[0]


def _all(work: "NamedWork") -> Tensors:
    return list(work.outputs())


def _with_rows(work: "NamedWork") -> tuple[torch.Tensor, torch.Tensor]:
    return _first(work), torch.tensor(work.rows(), dtype=torch.int32)


# --- allreduce ------------------------------------------------------------------------------------


def start_allreduce(
    outputs: Tensors,
    op: int,
    name: str | None,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
    result: Result,
) -> int:
    """In place; what comes of it is in `outputs`."""
    if op == ops.Adasum:
        adasum.check(process_set, outputs)
    return submit(
        "AllReduce",
        name,
        process_set,
        [],
        outputs,
        result=result,
        op=op,
        prescale=prescale,
        postscale=postscale,
    )


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """A handle, whose result is a tensor of this shape: the tensors of all ranks, reduced.

    The tensor must not be changed before that. op: hvd.Average by default. Of integers the factors
    multiply as doubles, and what is behind the point is lost.
    """
    output = _copy_of(tensor)
    return start_allreduce(
        [output],
        ops.chosen(op, average),
        name,
        prescale_factor,
        postscale_factor,
        process_set,
        lambda _: output,
    )


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """The same in place; the result is this tensor."""
    return start_allreduce(
        [_data_of(tensor)],
        ops.chosen(op, average),
        name,
        prescale_factor,
        postscale_factor,
        process_set,
        lambda _: tensor,
    )


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Several tensors as one operation; the result is a list."""
    outputs = [_copy_of(tensor) for tensor in tensors]
    return start_allreduce(
        outputs,
        ops.chosen(op, average),
        name,
        prescale_factor,
        postscale_factor,
        process_set,
        lambda _: outputs,
    )


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """The same in place."""
    return start_allreduce(
        [_data_of(tensor) for tensor in tensors],
        ops.chosen(op, average),
        name,
        prescale_factor,
        postscale_factor,
        process_set,
        lambda _: list(tensors),
    )


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: str,
    op: int,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Of a sparse COO tensor: the sum, or the average, of all ranks' tensors, by two allgathers.

    Returns what waits for it and gives the tensor; hvd.synchronize() takes it, too.
    """
    if op not in (ops.Average, ops.Sum):
        raise NotImplementedError(
            f"op=hvd.{ops.NAMES[op]} of a sparse tensor; give hvd.Average or hvd.Sum"
        )
    own = _data_of(tensor).coalesce()
    indices = allgather_async(own.indices().t().contiguous(), f"{name}.indices", process_set)
    values = allgather_async(own.values(), f"{name}.values", process_set)

    def finish_both() -> torch.Tensor:
        all_indices, all_values = synchronize(indices), synchronize(values)
        if op == ops.Average:
            all_values = all_values / process_set.size()
        summed = torch.sparse_coo_tensor(
            all_indices.t(), all_values, tensor.shape, check_invariants=False
        )
        return summed.coalesce()

    return finish_both


# --- the others -----------------------------------------------------------------------------------


def _check_rows(kind: str, tensors: Sequence[torch.Tensor]) -> None:
    for tensor in tensors:
        if _data_of(tensor).dim() == 0:
            raise ValueError(f"{kind}: a tensor is a scalar; give tensors with a first dimension")


def allgather_async(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """A handle, whose result has the rows of all ranks; each may have any number of rows."""
    _check_rows("allgather", [tensor])
    return submit("AllGather", name, process_set, [_data_of(tensor)], result=_first)


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Several tensors as one operation; the result is a list."""
    _check_rows("allgather", tensors)
    inputs = [_data_of(tensor) for tensor in tensors]
    return submit("AllGather", name, process_set, inputs, result=_all)


def root_in(process_set: ProcessSet, root_rank: int) -> int:
    ranks = state_of(process_set).ranks
    if root_rank not in ranks:
        raise ValueError(f"root_rank={root_rank} is not in {process_set}; give one of its ranks")
    return ranks.index(root_rank)


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """A handle, whose result is the root's tensor. root_rank: its number in the world."""
    root = root_in(process_set, root_rank)
    output = _copy_of(tensor)
    return submit("Broadcast", name, process_set, [], [output], root=root, result=_first)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """The same in place."""
    root = root_in(process_set, root_rank)
    outputs = [_data_of(tensor)]
    return submit("Broadcast", name, process_set, [], outputs, root=root, result=lambda _: tensor)


def alltoall_async(
    tensor: torch.Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """A handle, whose result has the rows that each rank has sent to this one, in their order.

    splits: how many rows go to each rank, as int32 or a list; None: equally many. With splits the
    result is that and an int32 tensor: how many rows have come from each.
    """
    _check_rows("alltoall", [tensor])
    counts = alltoall_splits(tensor, splits, process_set)
    result = _first if splits is None else _with_rows
    return submit("AllToAll", name, process_set, [_data_of(tensor)], splits=counts, result=result)


def alltoall_splits(tensor: torch.Tensor, splits: Any, process_set: ProcessSet) -> list[int]:
    ranks, rows = process_set.size(), tensor.shape[0]
    if splits is None:
        if rows % ranks != 0:
            raise ValueError(
                f"alltoall: the tensor has {rows} rows, which {ranks} ranks cannot share equally; "
                "give splits"
            )
        return [rows // ranks] * ranks
    if isinstance(splits, torch.Tensor):
        if splits.dtype != torch.int32:
            raise ValueError(f"alltoall: splits are {splits.dtype}; give torch.int32")
        splits = splits.tolist()
    counts = [int(split) for split in splits]
    if len(counts) != ranks or min(counts) < 0 or sum(counts) != rows:
        raise ValueError(
            f"alltoall: splits={counts}: give {ranks} numbers from 0 on, one for each rank, whose "
            f"sum is the {rows} rows of the tensor"
        )
    return counts


def _start_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    op: int,
    process_set: ProcessSet,
    prescale: float,
    postscale: float,
    result: Result,
) -> int:
    _check_rows("reducescatter", tensors)
    if ops.checked(op) not in (ops.Average, ops.Sum):
        raise NotImplementedError(
            f"reducescatter: op=hvd.{ops.NAMES[op]}; give hvd.Average or hvd.Sum"
        )
    return submit(
        "ReduceScatter",
        name,
        process_set,
        [_data_of(tensor) for tensor in tensors],
        result=result,
        op=op,
        prescale=prescale,
        postscale=postscale,
    )


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    op: int = ops.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Several tensors as one operation; the result is a list."""
    factors = (prescale_factor, postscale_factor)
    return _start_reducescatter(tensors, name, op, process_set, *factors, _all)


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: int = ops.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """A handle, whose result is this rank's rows of the reduced tensor.

    Rank r of n gets d // n rows of d, and one more if r < d % n.
    """
    factors = (prescale_factor, postscale_factor)
    return _start_reducescatter([tensor], name, op, process_set, *factors, _first)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks of the set are here, and what they submitted before has been run."""
    synchronize(submit("Barrier", None, process_set, [], result=lambda _: None))
