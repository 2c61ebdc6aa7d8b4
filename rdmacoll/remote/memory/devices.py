"""Another process's memory as a device: one allocates there, and reads and writes what one has.

The owner of the memory lends some, and need not know what is in it.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from .checks import check_timeout
from .kind import kind_to_make
from .opening import DEFAULT_TIMEOUT_S, Owner, RemoteTensor, owner_of
from .process import face


def lend(limit_bytes: int, group: dist.ProcessGroup | None = None) -> None:
    """Lets other processes allocate memory of this one, so many bytes at a time in all; 0: no more.

    What they have stays theirs until they free it, or end. group: by which others reach this
    process; None is the default group. Any thread. Raises ValueError for a negative limit.
    """
    if isinstance(limit_bytes, bool) or not isinstance(limit_bytes, int):
        raise TypeError(f"limit_bytes is a {type(limit_bytes).__name__}; give a number of bytes")
    if limit_bytes < 0:
        raise ValueError(f"limit_bytes={limit_bytes}; give 0 or more")
    face(group).lend(limit_bytes)


class Device:
    """The memory that another process lends. As device() makes it."""

    def __init__(self, owner: Owner, group: dist.ProcessGroup | None) -> None:
        self._owner = owner
        self._face = face(group)

    def __repr__(self) -> str:
        return f"Device({self._owner.who})"

    def empty(
        self,
        *size: int | tuple[int, ...],
        dtype: torch.dtype | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> RemoteTensor:
        """A tensor of zeros there, which only this process reads and writes.

        It is freed when Python lets go of the last part of it, or this process ends. size, dtype:
        as of remote.empty(). timeout: in seconds; it waits until the other lends some. Any thread.
        Raises OSError where the other has no room for it, TimeoutError, PeerError.
        """
        check_timeout(timeout)
        kind = kind_to_make(size, dtype)
        owner = self._owner
        opened = self._face.allocate_there(owner.address, owner.who, kind.bytes, timeout)
        return RemoteTensor(opened, kind, 0, f"memory of {owner.who}")

    def empty_like(self, tensor: torch.Tensor, timeout: float = DEFAULT_TIMEOUT_S) -> RemoteTensor:
        """As empty(), with the shape and the dtype of this tensor."""
        return self.empty(tuple(tensor.shape), dtype=tensor.dtype, timeout=timeout)


def device(
    on: int | None = None, at: str | None = None, group: dist.ProcessGroup | None = None
) -> Device:
    """The memory that another process lends: of a rank (`on`) or of an address (`at`).

    Both as of remote.open(), with the same errors. Any thread; does not wait.
    """
    return Device(owner_of(on, at, group), group)
