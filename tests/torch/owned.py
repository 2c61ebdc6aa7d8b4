"""Memory of one rank that all others use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from cases import me

from rdmacoll import remote

OWNER = 0


@contextlib.contextmanager
def owned(
    name: str, make: Callable[[], torch.Tensor], access: str = "rw"
) -> Iterator[tuple[remote.Exposure | None, remote.RemoteTensor | None]]:
    """The owner's exposure on the owner, and on all others what they open. Until all are done."""
    if me()[0] == OWNER:
        exposure = remote.expose(make(), name, access=access)
        yield exposure, None
        dist.barrier()
        exposure.revoke()
    else:
        yield None, remote.open(name, on=OWNER)
        dist.barrier()
    dist.barrier()
