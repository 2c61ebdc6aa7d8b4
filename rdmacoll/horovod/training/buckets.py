"""Gradients that are reduced as one, and which of them are.

Floor: rdmacoll/horovod/training. Thread: any.
"""

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist

from rdmacoll import memory
from rdmacoll.horovod.names.compression import Compressor

BUCKET_BYTES = 25 << 20


class Bucket:
    """Gradients that are reduced as one. counts: an element more stands behind them."""

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


class Cut:
    """The parameters of each bucket, and the dtype in which they are sent."""

    def __init__(self, buckets: list[tuple[list[torch.Tensor], torch.dtype]]) -> None:
        # Without a parameter there is a bucket all the same, for what counts.
        self.buckets = buckets or [([], torch.float32)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cut) and self._ids() == other._ids()

    __hash__ = None  # type: ignore[assignment]

    def _ids(self) -> list[list[int]]:
        return [[id(p) for p in parameters] for parameters, _ in self.buckets]


def cut(
    order: Sequence[torch.Tensor],
    groups: Iterable[Sequence[torch.Tensor]],
    compression: type[Compressor],
) -> Cut:
    """order: as their gradients come; a bucket comes with the last of its own.

    groups: those that share a bucket whatever their size; of these, too, order is what counts.
    """
    dtype_of = {p: compression.compress(torch.zeros(1, dtype=p.dtype))[0].dtype for p in order}
    place = {p: number for number, p in enumerate(order)}
    group_of = {p: number for number, group in enumerate(groups) for p in group}
    lists: list[list[torch.Tensor]] = []
    grouped: dict[tuple[int, torch.dtype], list[torch.Tensor]] = {}
    open_list: dict[torch.dtype, list[torch.Tensor]] = {}
    left_bytes: dict[torch.dtype, int] = {}  # in the open list
    for p in order:
        dtype = dtype_of[p]
        if p in group_of:
            key = (group_of[p], dtype)
            if key not in grouped:
                lists.append(grouped.setdefault(key, []))
            grouped[key].append(p)
            continue
        if left_bytes.get(dtype, -1) < p.nbytes:
            open_list[dtype] = []
            lists.append(open_list[dtype])
            left_bytes[dtype] = BUCKET_BYTES
        open_list[dtype].append(p)
        left_bytes[dtype] -= p.nbytes
    lists.sort(key=lambda parameters: place[parameters[-1]])
    return Cut([(some, dtype_of[some[0]]) for some in lists])
