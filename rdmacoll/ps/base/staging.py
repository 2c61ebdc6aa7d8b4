"""Staging: tensors of a GPU go to servers, and come from them, through pinned memory of this host:
servers and networks see the host's memory alone.

Floor: rdmacoll/ps/base. Thread: any; copies are in the order of the current stream.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable

import torch


def is_staged(tensor: torch.Tensor) -> bool:
    """Whether it is in memory of this torch's accelerator."""
    if tensor.device.type == "cpu":
        return False
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator is not None and accelerator.type == tensor.device.type


def empty_pinned(*shape: int) -> torch.Tensor:
    return torch.empty(shape, pin_memory=True)


def pin(memory: torch.Tensor, owner: object) -> None:
    """Copies to and from it need not wait, until the owner is gone, which holds the memory. Warns
    where it cannot be pinned: they wait then."""
    if not torch.cuda.is_available() or memory.nbytes == 0:
        return
    runtime, address = torch.cuda.cudart(), memory.data_ptr()
    error = int(runtime.cudaHostRegister(address, memory.nbytes, 0))
    if error == 0:
        weakref.finalize(owner, runtime.cudaHostUnregister, address)
        return
    warnings.warn(
        f"{memory.nbytes} bytes could not be pinned (cudaHostRegister: {error}): copies of "
        "gradients from the GPU take longer",
        stacklevel=2,
    )


def settle(devices: Iterable[torch.device]) -> None:
    """Returns once what was copied in their current streams is there."""
    for device in devices:
        torch.get_device_module(device).current_stream(device).synchronize()


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a staged one, which is complete."""
    copy = empty_pinned(*tensor.shape)
    copy.copy_(tensor, non_blocking=True)
    settle([tensor.device])
    return copy
