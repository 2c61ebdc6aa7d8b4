"""trace_placement(): learns which tensors meet operations of the backend, and places them.

Which those are shows only when a model runs: DDP makes buckets, FSDP buffers, out of Python's
sight. So the backend notes the storage of everything it is given. At the end of an iteration what
still lives is moved, as by place_(); what has gone will be made again, so from then on memory of
its size comes from the heap. placement_report.py says what became of each.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ._extension import extension
from .memory import LEAST_BYTES, in_heap
from .placement_report import PlacementReport, Traced, names_of

__all__ = ["Placement", "trace_placement"]

SHARED = "torch shares it with other processes (share_memory_())"
EXPORTED = "its memory is NumPy's or another library's, too, which would keep the old address"
IN_FLIGHT = "an operation on it was in flight at the iteration's end; wait() for it before"
NO_ROOM = "the heap has no room for it; rdmarun --heap-size sets the limit"
RESIZED = "it was resized since it was moved, by an allocator from before: make it in the context"
ANOTHER = "a tensor that is not the model's"


@contextmanager
def trace_placement(
    model: torch.nn.Module | None = None, least_bytes: int = LEAST_BYTES
) -> Iterator["Placement"]:
    """A context in which tensors that operations of the backend "rdma" meet get into the heap.

    An iteration ends where `model` is called again, where step() is, and with the context. What
    has lived until then is moved into the heap, and what has not is made there in later iterations
    of the context. What was moved stays. Tensors below `least_bytes` are left where they are.
    The Placement that it yields says what became of each tensor.
    Raises ValueError for least_bytes below 1, TypeError for a model that is none, RuntimeError
    inside another such context.
    """
    if least_bytes < 1:
        raise ValueError(f"least_bytes={least_bytes}; give 1 or more")
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"trace_placement() takes a module, not a {type(model).__name__}; leave it out and "
            "call step() at the end of each iteration"
        )
    if not extension().start_tracing_operands():
        raise RuntimeError("trace_placement() is under way already; leave that context first")
    extension().serve_sizes_from_heap([])  # from here on tensors keep an allocator that can serve
    placement = Placement(model, least_bytes)
    hook = model and model.register_forward_pre_hook(lambda *_: placement.step(), prepend=True)
    try:
        yield placement
        placement.step()
    finally:
        if hook:
            hook.remove()
        extension().stop_tracing_operands()
        extension().serve_sizes_from_heap([])


class Placement:
    """What trace_placement() has learnt and done so far."""

    def __init__(self, model: torch.nn.Module | None, least_bytes: int) -> None:
        self._model, self._least_bytes = model, least_bytes
        self._moved: dict[int, str] = {}  # names, by storage
        self._placed: dict[int, Traced] = {}
        self._left: dict[int, Traced] = {}
        self._freed: Counter[int] = Counter()  # by size

    def step(self) -> None:
        """Ends an iteration: moves what lives, and has the sizes of what does not served."""
        names: dict[int, str] = {}
        served = self._served()
        for storage, memory, size_bytes, operations, in_flight in extension().traced_operands():
            self._placed.pop(storage, None)
            self._left.pop(storage, None)
            if memory is None:
                self._moved.pop(storage, None)
            if memory is None or memory.nbytes == 0:  # FSDP1 frees by resizing to nothing
                self._freed[size_bytes] += 1
            elif not in_heap(memory):
                names = names or names_of(self._model)
                name = names.get(memory.data_ptr(), ANOTHER)
                reason = RESIZED if storage in self._moved else self._move(memory, in_flight)
                traced = Traced(name, size_bytes, operations, reason)
                if reason:
                    self._left[storage] = traced
                else:
                    self._moved[storage] = name
                    self._placed[storage] = traced
            elif storage in self._moved:
                self._placed[storage] = Traced(self._moved[storage], size_bytes, operations)
        if self._served() != served:
            extension().serve_sizes_from_heap(self._served())

    def report(self) -> PlacementReport:
        """What has become of all that met operations; print it."""
        return PlacementReport(
            [*self._placed.values()], [*self._left.values()], dict(self._freed), self._served()
        )

    def _served(self) -> list[int]:
        """The sizes to serve, those first that give most."""
        sizes = [size for size in self._freed if size >= self._least_bytes]
        sizes.sort(key=lambda size: size * self._freed[size], reverse=True)
        return sizes[: extension().SERVED_SIZES]

    def _move(self, memory: torch.Tensor, in_flight: bool) -> str:
        """Empty, or why it stays where it is."""
        if memory.nbytes < self._least_bytes:
            return f"it is smaller than least_bytes={self._least_bytes}"
        if memory.is_shared():
            return SHARED
        if in_flight:
            return IN_FLIGHT
        if not memory.untyped_storage().resizable():  # as NumPy and from_blob() leave it
            return EXPORTED
        return "" if extension().place_in_heap(memory) else NO_ROOM
