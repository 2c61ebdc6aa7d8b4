"""The heap: memory on which operations copy nothing.

Ranks of one host read each other's heaps, and RDMA devices send from them, so what a collective
sends lies where it is already. Whatever lies elsewhere works the same, with a copy. The heap of a
process grows as it is used, up to RDMACOLL_HEAP_BYTES; what finds no room is ordinary memory, which
is warned of once and counted in memory_stats().
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from ._extension import extension

__all__ = ["empty", "in_heap", "memory_stats", "place_", "registered_memory", "zeros"]

Placed = TypeVar("Placed", torch.Tensor, torch.nn.Module)
LEAST_BYTES = 64 * 1024


def empty(
    *size: int | tuple[int, ...], dtype: torch.dtype | None = None, requires_grad: bool = False
) -> torch.Tensor:
    """A CPU tensor of this shape in the heap; its values are not set. As torch.empty().

    size: integers, or one tuple of them, in elements. dtype: None is torch's default dtype.
    Where the heap has no room, the tensor is in ordinary memory: memory_stats()["refused"] counts
    these. Any thread. Raises ValueError for a negative dimension.
    """
    sizes = [n for part in size for n in (part if isinstance(part, (tuple, list)) else (part,))]
    if any(n < 0 for n in sizes):
        raise ValueError(f"size={tuple(sizes)} has a negative dimension; give 0 or more of each")
    tensor: torch.Tensor = extension().empty_in_heap(sizes, dtype or torch.get_default_dtype())
    return tensor.requires_grad_(requires_grad)


def zeros(
    *size: int | tuple[int, ...], dtype: torch.dtype | None = None, requires_grad: bool = False
) -> torch.Tensor:
    """A CPU tensor of this shape in the heap, filled with zeros. As torch.zeros(); see empty()."""
    return empty(*size, dtype=dtype).zero_().requires_grad_(requires_grad)


def place_(what: Placed) -> Placed:
    """Moves a tensor, or a module's parameters, their gradients and its buffers, into the heap.

    In place, as torch's share_memory_(): shape and values stay, views move with their tensor, but
    NumPy arrays made of it before must not be used any more. Returns its argument. What the heap
    has no room for stays where it is. No other thread may use the tensors meanwhile.
    Raises ValueError, before anything is moved, for a tensor that is not strided, not on the CPU,
    shared with other processes, or in an operation in flight; TypeError for anything else than a
    tensor or a module.
    """
    tensors = list(_tensors_of(what))
    for tensor in tensors:
        _check_movable(tensor)
    for tensor in tensors:
        extension().place_in_heap(tensor)
    return what


def in_heap(tensor: torch.Tensor) -> bool:
    """Whether the tensor's storage lies in this process's heap. Any thread."""
    return bool(extension().is_in_heap(tensor))


@contextmanager
def registered_memory(least_bytes: int = LEAST_BYTES) -> Iterator[None]:
    """A context in which tensors of `least_bytes` and more come from the heap, whoever makes them.

    Also those that C++ allocates (DDP's buckets, FSDP's buffers, results of operators), in every
    thread of the process. DDP makes its buckets in its constructor and once more in its second
    iteration (its third with static_graph=True), so the context has to span both.
    Raises ValueError for least_bytes below 1.
    """
    if least_bytes < 1:
        raise ValueError(f"least_bytes={least_bytes}; give 1 or more")
    before = extension().serve_from_heap(least_bytes)
    try:
        yield
    finally:
        extension().serve_from_heap(before)


def memory_stats() -> dict[str, int]:
    """What this process's heap holds. Any thread.

    capacity_bytes         its limit
    reserved_bytes         in use at some time so far
    allocated_bytes        in use now
    peak_allocated_bytes   the most that was in use so far
    allocations            number of allocations so far
    refused                number of allocations that found no room and are ordinary memory
    """
    return dict(extension().heap_stats())


def _tensors_of(what: torch.Tensor | torch.nn.Module) -> Iterator[torch.Tensor]:
    if isinstance(what, torch.Tensor):
        yield what
    elif isinstance(what, torch.nn.Module):
        for parameter in what.parameters():
            yield parameter.data
            if parameter.grad is not None:
                yield parameter.grad
        yield from what.buffers()
    else:
        raise TypeError(f"place_() takes a tensor or a module, not a {type(what).__name__}")


def _check_movable(tensor: torch.Tensor) -> None:
    about = f"a tensor of shape {tuple(tensor.shape)}"
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        raise ValueError(
            f"{about} is {tensor.layout} on {tensor.device}; only strided tensors on the CPU can "
            "be placed in the heap"
        )
    if tensor.is_shared():
        raise ValueError(
            f"{about} is in memory that torch shares with other processes (share_memory_()), "
            "which moving would take it out of; place it before, or clone() it"
        )
    if extension().is_in_flight(tensor):
        raise ValueError(
            f"{about} is in an operation in flight, whose result would be lost; wait() for it first"
        )
