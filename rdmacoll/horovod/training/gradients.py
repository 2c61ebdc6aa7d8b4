"""Gradients of an optimizer: buckets that all ranks cut alike, reduced in one fixed order.

So ranks need not ask each other which of them is next: step() and synchronize() fill in what a rank
has no gradient of, and all come to the same end. A rank that has joined goes on with zeros; the
last element of the first bucket says whether any rank has not.

A parameter's gradient becomes a view of its bucket, so what backward() computes is copied once.
Floor: rdmacoll/horovod/training. Thread: the one of backward() and step(), one at a time.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from rdmacoll import memory
from rdmacoll.horovod.names import ops, timeline
from rdmacoll.horovod.names.compression import Compressor, NoneCompressor
from rdmacoll.horovod.names.exceptions import HorovodInternalError

if TYPE_CHECKING:
    from rdmacoll._C import RdmaBackend

BUCKET_BYTES = 25 << 20
# What a rank that steps, and one that has joined, put into the last element: if one steps, that is
# seen in what comes of it. Of other operations than these it is (1, 0).
STEPS_OR_JOINED = {ops.Min: (-1, 0), ops.Product: (0, 1)}


class Bucket:
    """Gradients that are reduced as one."""

    def __init__(self, parameters: list[torch.Tensor], dtype: torch.dtype, counts: bool) -> None:
        self.parameters = parameters
        total = sum(p.numel() for p in parameters)
        self.memory = memory.zeros(total + counts, dtype=dtype)
        self.views = []
        first = 0
        for p in parameters:
            flat = self.memory[first : first + p.numel()]
            self.views.append(flat.as_strided(p.shape, _strides_of(p), flat.storage_offset()))
            first += p.numel()
        self.missing = len(parameters)  # gradients that are not in it yet
        self.work: dist.Work | None = None


def _strides_of(parameter: torch.Tensor) -> tuple[int, ...]:
    """Of a gradient that autograd would make."""
    return tuple(torch.empty_like(parameter, device="meta").stride())


class Gradients:
    """parameters: in the order in which their gradients are expected last, as models have them.

    groups: lists of parameters that are to be reduced together; the others as they come
    """

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        groups: Sequence[Sequence[torch.Tensor]],
        compression: type[Compressor],
        op: int,
        predivide: float,
    ) -> None:
        self._backend: RdmaBackend | None = None  # of the ranks that there are now
        self._compression = compression
        self._is_plain = compression is NoneCompressor
        self._op = op
        self._predivide = predivide
        self._steps, self._joined = STEPS_OR_JOINED.get(op, (1, 0))
        self._buckets = _cut(parameters, groups, compression)
        self._place = {
            p: (bucket, number)
            for bucket in self._buckets
            for number, p in enumerate(bucket.parameters)
        }
        for bucket in self._buckets:
            self._fill(bucket)
        self._contexts: dict[torch.Tensor, Any] = {}
        self._next = 0  # the bucket to be started
        self.zeros_started = 0  # steps, while this rank had joined
        self._reduce_op = dist.AllreduceOptions()
        self._reduce_op.reduceOp = _reduce_op(op, predivide)
        self._reduce_op.asyncOp = True

    def _fill(self, bucket: Bucket) -> None:
        """Scripts count on it that every parameter has a gradient from the start."""
        for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
            if parameter.grad is None:
                parameter.grad = view if self._is_plain else torch.zeros_like(parameter)

    def begin(self, backend: "RdmaBackend") -> None:
        """From now on they are reduced by this group; what was put before is forgotten."""
        self._backend = backend
        self._begin_anew()

    @property
    def has_begun(self) -> bool:
        return self._backend is not None

    def put(self, parameter: torch.Tensor, gradient: torch.Tensor | None) -> None:
        """A gradient is complete; None: this rank has none, and adds zeros."""
        bucket, number = self._place[parameter]
        view = bucket.views[number]
        if gradient is None:
            view.zero_()
        else:
            sent, self._contexts[parameter] = self._compression.compress(gradient)
            if self._predivide != 1.0:
                torch.mul(sent, 1.0 / self._predivide, out=view)
            elif sent.data_ptr() != view.data_ptr():
                view.copy_(sent)
        bucket.missing -= 1
        if bucket.missing == 0:
            self._start_ready()

    def _start_ready(self) -> None:
        while self._next < len(self._buckets) and self._buckets[self._next].missing == 0:
            bucket = self._buckets[self._next]
            if self._next == 0:
                bucket.memory[-1] = self._steps
            self._start(bucket)
            self._next += 1

    def _start(self, bucket: Bucket) -> None:
        backend: Any = self._backend  # torch's stubs lack what its backends do
        begun_ns = time.monotonic_ns()
        try:
            bucket.work = backend.allreduce([bucket.memory], self._reduce_op)
        except RuntimeError as error:
            raise HorovodInternalError(str(error)) from error
        if timeline.is_on():
            number = self._buckets.index(bucket)
            timeline.note_bucket(backend, number, bucket.memory, bucket.work, begun_ns)

    def finish(self) -> None:
        """Once every parameter was put: their gradients are those of all ranks."""
        for bucket in self._buckets:
            assert bucket.work is not None
            try:
                bucket.work.wait()
            except RuntimeError as error:
                raise HorovodInternalError(str(error)) from error
            self._hand_out(bucket)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._next = 0
        for bucket in self._buckets:
            bucket.missing, bucket.work = len(bucket.parameters), None

    def _hand_out(self, bucket: Bucket) -> None:
        if self._op == ops.Average and self._predivide != 1.0:
            assert self._backend is not None
            bucket.memory.mul_(self._predivide / self._backend.size())
        for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
            if self._is_plain:
                parameter.grad = view
            else:
                ctx = self._contexts.get(parameter, parameter.dtype)
                parameter.grad = self._compression.decompress(view, ctx)

    # --- a rank that has joined -------------------------------------------------------------------

    def start_zeros(self) -> None:
        """As a step does: the first bucket alone, as there may be no further step."""
        self._begin_anew()
        self.zeros_started += 1
        self._buckets[0].memory.zero_()
        self._buckets[0].memory[-1] = self._joined
        self._start(self._buckets[0])

    def follow(self) -> bool:
        """Goes on with what start_zeros() began, as far as it can. Whether all have joined."""
        works = [bucket.work for bucket in self._buckets]
        started = [work for work in works if work is not None]
        if not all(work.is_completed() for work in started):
            return False
        for work in started:
            work.wait()  # raises what one has ended with
        if self._buckets[0].memory[-1] == self._joined:
            self._begin_anew()
            return True
        if works[-1] is None:
            for bucket in self._buckets[1:]:
                bucket.memory.zero_()
                self._start(bucket)
        else:
            self.start_zeros()
        return False

    def close(self) -> None:
        """Ends their group; what is in flight there fails, here and on the others."""
        backend, self._backend = self._backend, None
        if backend is None:
            return
        backend._leave()
        backend.shutdown()


def _reduce_op(op: int, predivide: float) -> Any:
    if op == ops.Average:
        return dist.ReduceOp.AVG if predivide == 1.0 else dist.ReduceOp.SUM
    return {
        ops.Sum: dist.ReduceOp.SUM,
        ops.Min: dist.ReduceOp.MIN,
        ops.Max: dist.ReduceOp.MAX,
        ops.Product: dist.ReduceOp.PRODUCT,
    }[op]


def _cut(
    parameters: Sequence[torch.Tensor],
    groups: Sequence[Sequence[torch.Tensor]],
    compression: type[Compressor],
) -> list[Bucket]:
    """The last parameters first, as backward() comes to them first."""
    dtype_of = {p: compression.compress(torch.zeros(1, dtype=p.dtype))[0].dtype for p in parameters}
    grouped = {p for group in groups for p in group}
    lists: list[list[torch.Tensor]] = []
    for group in groups:
        for dtype in {dtype_of[p]: None for p in group}:
            lists.append([p for p in group if dtype_of[p] == dtype])
    open_list: dict[torch.dtype, list[torch.Tensor]] = {}
    left_bytes: dict[torch.dtype, int] = {}  # in the open list
    for p in reversed(parameters):
        if p in grouped:
            continue
        dtype = dtype_of[p]
        if left_bytes.get(dtype, -1) < p.nbytes:
            open_list[dtype] = []
            lists.append(open_list[dtype])
            left_bytes[dtype] = BUCKET_BYTES
        open_list[dtype].append(p)
        left_bytes[dtype] -= p.nbytes
    return [Bucket(list_, dtype_of[list_[0]], i == 0) for i, list_ in enumerate(lists)]


def follow(all_gradients: list[Gradients]) -> int:
    """Goes with the optimizers of ranks that have not joined, until all have.

    How many steps that were: the later a rank has joined, the fewer.
    """
    before = sum(gradients.zeros_started for gradients in all_gradients)
    for gradients in all_gradients:
        gradients.start_zeros()
    left = list(all_gradients)
    pause_s = 50e-6
    while left:
        try:
            still = [gradients for gradients in left if not gradients.follow()]
        except RuntimeError as error:
            raise HorovodInternalError(str(error)) from error
        moved, left = len(still) < len(left), still
        pause_s = 50e-6 if moved else min(2 * pause_s, 2e-3)
        if left:
            time.sleep(pause_s)
    started = sum(gradients.zeros_started for gradients in all_gradients) - before
    return started - len(all_gradients)  # in the last of each nobody was left
