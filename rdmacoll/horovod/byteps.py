"""The interface of BytePS for torch: `import rdmacoll.horovod.byteps as bps`.

It is Horovod's, with push_pull() in the place of allreduce(). Nothing is pushed to a server, so
version and priority, which are for those, mean nothing here.
Floor: rdmacoll/horovod. Thread: any; init and shutdown one at a time.
"""

import torch

from .names import autograd, operations, ops, world
from .names.compression import Compression, Compressor
from .names.handles import poll, synchronize
from .names.world import local_rank, local_size, rank, shutdown, size
from .training.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .training.optimizer import DistributedOptimizer

__all__ = [
    "Compression",
    "DistributedOptimizer",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "init",
    "local_rank",
    "local_size",
    "poll",
    "push_pull",
    "push_pull_async",
    "push_pull_async_inplace",
    "push_pull_inplace",
    "rank",
    "shutdown",
    "size",
    "synchronize",
]


def init(lazy: bool = True) -> None:
    """Makes the groups of all ranks of the job. lazy: of no meaning here."""
    world.init()


def push_pull(
    tensor: torch.Tensor,
    average: bool = True,
    name: str | None = None,
    version: int = 0,
    priority: int = 0,
    compression: type[Compressor] = Compression.none,
) -> torch.Tensor:
    """The tensors of all ranks, averaged or summed, as a new tensor; gradients flow back."""
    return autograd.allreduce(tensor, name=name, compression=compression, op=_op(average))


def push_pull_inplace(
    tensor: torch.Tensor,
    average: bool = True,
    name: str | None = None,
    version: int = 0,
    priority: int = 0,
) -> torch.Tensor:
    """The same in place."""
    return autograd.allreduce_(tensor, name=name, op=_op(average))


def push_pull_async(
    tensor: torch.Tensor,
    average: bool = True,
    name: str | None = None,
    version: int = 0,
    priority: int = 0,
) -> int:
    """A handle, whose result is a new tensor."""
    return operations.allreduce_async(tensor, name=name, op=_op(average))


def push_pull_async_inplace(
    tensor: torch.Tensor,
    average: bool = True,
    name: str | None = None,
    version: int = 0,
    priority: int = 0,
) -> int:
    """A handle, whose result is this tensor."""
    return operations.allreduce_async_(tensor, name=name, op=_op(average))


def _op(average: bool) -> int:
    return ops.Average if average else ops.Sum
