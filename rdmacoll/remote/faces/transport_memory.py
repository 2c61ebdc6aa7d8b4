"""Tensors registered with a transport, and views of them, as torch's protocols name them."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from ..memory.exposing import Exposure
from .descriptors import RdmaRemoteBuffer

if TYPE_CHECKING:
    from .torch_transport import RdmaTransport


@dataclass(eq=False)
class Registration:
    tensor: torch.Tensor
    data: torch.Tensor  # its bytes
    exposure: Exposure | None = None  # once others were told of it
    buffer: RdmaRemoteBuffer | None = None  # what they were told
    active: bool = True

    def check(self) -> None:
        if not self.active:
            raise RuntimeError("the memory has been unregistered; register the tensor again")
        if self.tensor.data_ptr() != self.data.data_ptr():
            raise RuntimeError("the tensor's storage was replaced after it had been registered")


class RdmaMemoryView:
    """A range of registered memory, in bytes, from which is written."""

    def __init__(self, memory: RdmaMemory, offset: int | None, length: int | None) -> None:
        memory.registration.check()
        all_bytes = memory.registration.data.nbytes
        first = 0 if offset is None else operator.index(offset)
        if not 0 <= first <= all_bytes:
            raise ValueError(f"offset={offset} is outside of memory of {all_bytes} bytes")
        size = all_bytes - first if length is None else operator.index(length)
        if not 0 <= size <= all_bytes - first:
            raise ValueError(f"length={length} from byte {first} on exceeds {all_bytes} bytes")
        self.memory = memory
        self.data = memory.registration.data[first : first + size]

    def size(self) -> int:
        return self.data.nbytes


class RdmaMutableMemoryView(RdmaMemoryView):
    """The same, to be read into."""

    writable: Literal[True] = True


class RdmaMemory:
    """A tensor that is registered with a transport."""

    def __init__(self, transport: RdmaTransport, registration: Registration) -> None:
        self.transport = transport
        self.registration = registration

    def to_view(self, offset: int | None = None, length: int | None = None) -> RdmaMemoryView:
        """offset, length: in bytes. Raises ValueError for a range that is outside."""
        return RdmaMemoryView(self, offset, length)

    def to_mutable_view(
        self, offset: int | None = None, length: int | None = None
    ) -> RdmaMutableMemoryView:
        """As to_view()."""
        return RdmaMutableMemoryView(self, offset, length)

    def to_remote_buffer(self, *, timeout: float | None = None) -> RdmaRemoteBuffer:
        """By which the peer reads all of the memory, and writes it if it was made with "rw".

        Raises ValueError for memory that others cannot reach. It does not wait.
        """
        return self.transport.show(self.registration)
