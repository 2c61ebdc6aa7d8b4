"""Gradients of an optimizer: buckets that all ranks cut alike, reduced in one fixed order.

So ranks need not ask each other which of them is next: step() and synchronize() fill in what a rank
has no gradient of, and all come to the same end. A rank that has joined goes on with zeros; the
last element of the first bucket says whether any rank has not. The first step in each world ends
with buckets cut anew, by what all have seen in it.

A parameter's gradient becomes a view of its bucket, so what backward() computes is copied once.
Floor: rdmacoll/horovod/training. Thread: the one of backward() and step(), one at a time.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from rdmacoll.horovod.names import ops, timeline
from rdmacoll.horovod.names.compression import Compressor, NoneCompressor
from rdmacoll.horovod.names.exceptions import HorovodInternalError

from .arrival import Arrival
from .buckets import Bucket, Cut, cut

if TYPE_CHECKING:
    from rdmacoll._C import RdmaBackend

# What a rank that steps, and one that has joined, put into the last element: if one steps, that is
# seen in what comes of it. Of other operations than these it is (1, 0).
STEPS_OR_JOINED = {ops.Min: (-1, 0), ops.Product: (0, 1)}


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
        self._parameters, self._groups = parameters, groups
        self._first_cut = cut(list(reversed(parameters)), groups, compression)
        self._make(self._first_cut)
        for bucket in self._buckets:
            self._fill(bucket)
        self._arrival: Arrival | None = None  # while the first step of a world is on
        self._sparse_dims: dict[torch.Tensor, int] = {}  # of those that are in no bucket
        self._contexts: dict[torch.Tensor, Any] = {}
        self._next = 0  # the bucket to be started
        self.zeros_started = 0  # steps, while this rank had joined
        self._reduce_op = dist.AllreduceOptions()
        self._reduce_op.reduceOp = _reduce_op(op, predivide)
        self._reduce_op.asyncOp = True

    def _make(self, cut_: Cut) -> None:
        self._cut = cut_
        self._buckets = [
            Bucket(some, dtype, number == 0) for number, (some, dtype) in enumerate(cut_.buckets)
        ]
        self._place = {
            p: (bucket, number)
            for bucket in self._buckets
            for number, p in enumerate(bucket.parameters)
        }

    def _cut_anew(self, cut_: Cut) -> None:
        """What is a gradient now remains one. The old buckets go first: both may have no room."""
        if cut_ == self._cut:
            return
        kept = self._take_out()
        self._make(cut_)
        for parameter, gradient in kept.items():
            if parameter in self._place:
                bucket, number = self._place[parameter]
                parameter.grad = bucket.views[number].copy_(gradient)

    def _take_out(self) -> dict[torch.Tensor, torch.Tensor]:
        """Gradients that lie in buckets, elsewhere; and no bucket is left."""
        kept = {}
        for parameter, (bucket, number) in self._place.items():
            if parameter.grad is bucket.views[number]:
                kept[parameter] = parameter.grad = bucket.views[number].clone()
        self._buckets, self._place = [], {}
        return kept

    def _fill(self, bucket: Bucket) -> None:
        """Scripts count on it that every parameter has a gradient from the start."""
        for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
            if parameter.grad is None:
                parameter.grad = view if self._is_plain else torch.zeros_like(parameter)

    def begin(self, backend: "RdmaBackend") -> None:
        """From now on they are reduced by this group; what was put before is forgotten."""
        self._backend = backend
        self._arrival = Arrival(self._parameters)
        self._sparse_dims = {}
        self._cut_anew(self._first_cut)
        self._begin_anew()

    @property
    def has_begun(self) -> bool:
        return self._backend is not None

    def put(self, parameter: torch.Tensor, gradient: torch.Tensor | None) -> None:
        """A dense gradient is complete; None: this rank has none, and adds zeros."""
        bucket, number = self._place[parameter]
        view = bucket.views[number]
        if gradient is None:
            view.zero_()
        else:
            if self._arrival is not None:
                self._arrival.note(parameter, gradient)
            sent, self._contexts[parameter] = self._compression.compress(gradient)
            if self._predivide != 1.0:
                torch.mul(sent, 1.0 / self._predivide, out=view)
            elif sent.data_ptr() != view.data_ptr():
                view.copy_(sent)
        if self._is_plain:
            parameter.grad = view  # here, so that what backward() made is free for its next one
        self._one_is_there(bucket)

    def put_sparse(self, parameter: torch.Tensor, gradient: torch.Tensor) -> None:
        """A sparse one, which goes its own way. In the first step its bucket has zeros for it."""
        if self._arrival is None:
            return
        self._arrival.note(parameter, gradient)
        bucket, number = self._place[parameter]
        bucket.views[number].zero_()
        if self._is_plain:
            parameter.grad = bucket.views[number]
        self._one_is_there(bucket)

    def takes_sparse(self, parameter: torch.Tensor) -> bool:
        """Whether a sparse gradient of it may go its own way: so do those of all ranks, then."""
        return self._arrival is not None or parameter in self._sparse_dims

    def sparse_dim(self, parameter: torch.Tensor) -> int:
        """Not 0 since the first step if its gradient has to be sparse, in so many dimensions."""
        return self._sparse_dims.get(parameter, 0)

    def _one_is_there(self, bucket: Bucket) -> None:
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
        if self._next == len(self._buckets):
            self._tell_arrival()

    def _tell_arrival(self) -> None:
        if self._arrival is not None:
            assert self._backend is not None
            self._arrival.start(self._backend)

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

    def finish(self) -> Arrival | None:
        """Once every parameter was put: their gradients are those of all ranks.

        After the first step in a world: what all have seen in it.
        """
        if not self._place:
            self._start_ready()  # nothing was put, but there is a bucket
        try:
            for bucket in self._buckets:
                assert bucket.work is not None
                bucket.work.wait()
                self._hand_out(bucket)
            self._begin_anew()
            return self._settle()
        except RuntimeError as error:
            raise HorovodInternalError(str(error)) from error

    def _settle(self) -> Arrival | None:
        arrival, self._arrival = self._arrival, None
        if arrival is None:
            return None
        assert arrival.work is not None
        arrival.work.wait()
        self._sparse_dims = arrival.sparse_dims()
        order = [p for p in arrival.order() if p not in self._sparse_dims]
        self._cut_anew(cut(order, self._groups, self._compression))
        return arrival

    def _begin_anew(self) -> None:
        self._next = 0
        for bucket in self._buckets:
            bucket.missing, bucket.work = len(bucket.parameters), None

    def _hand_out(self, bucket: Bucket) -> None:
        if self._op == ops.Average and self._predivide != 1.0:
            assert self._backend is not None
            bucket.memory.mul_(self._predivide / self._backend.size())
        if self._is_plain:
            return
        for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
            ctx = self._contexts.get(parameter, parameter.dtype)
            parameter.grad = self._compression.decompress(view, ctx)

    # --- a rank that has joined -------------------------------------------------------------------

    def start_zeros(self) -> None:
        """As a step does: the first bucket alone, as there may be no further step."""
        self._begin_anew()
        if self._arrival is not None:
            self._arrival = Arrival(self._parameters)  # of a step that was begun
        self.zeros_started += 1
        self._buckets[0].memory.zero_()
        self._buckets[0].memory[-1] = self._joined
        self._start(self._buckets[0])

    def follow(self) -> bool:
        """Goes on with what start_zeros() began, as far as it can. Whether all have joined."""
        works = self._begun()
        if not all(work.is_completed() for work in works):
            return False
        for work in works:
            work.wait()  # raises what one has ended with
        if self._buckets[0].memory[-1] == self._joined:
            self._begin_anew()
            return True
        if self._next == 0:
            for bucket in self._buckets[1:]:
                bucket.memory.zero_()
                self._start(bucket)
            self._next = len(self._buckets)
            self._tell_arrival()
        else:
            self._settle()
            self.start_zeros()
        return False

    def _begun(self) -> list[Any]:
        """The operations of this step so far, ended ones among them."""
        works = [bucket.work for bucket in self._buckets]
        works.append(self._arrival.work if self._arrival is not None else None)
        return [work for work in works if work is not None]

    def let_end(self, limit_s: float) -> None:
        """Waits, at most so long, until what has begun here has ended, well or not."""
        works = self._begun()
        until = time.monotonic() + limit_s
        while not all(work.is_completed() for work in works) and time.monotonic() < until:
            time.sleep(1e-3)

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
