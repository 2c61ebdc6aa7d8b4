"""The owner's side: memory that others may reach, and tensors exposed in it."""

from __future__ import annotations

import torch
import torch.distributed as dist

from .checks import check_access, check_name, check_tensor, check_timeout
from .kind import kind_of, kind_to_make
from .process import face
from .words import check_word, from_word, to_word
from .works import RemoteWork, nothing


def empty(
    *size: int | tuple[int, ...],
    dtype: torch.dtype | None = None,
    access: str = "r",
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """A CPU tensor of zeros in memory of its own, that others can reach once it is exposed.

    size: integers, or one tuple of them, in elements. dtype: None is torch's default dtype.
    access: what others can do there, ever: "r", and inside a host the system itself keeps them from
    more, or "rw". group: by which others are reached; None is the default group.
    The memory is freed with its last tensor; who has it open then reads RevokedError. Any thread.
    Raises ValueError for a negative dimension or another access, OSError where there is no memory.
    """
    check_access(access)
    kind = kind_to_make(size, dtype)
    memory = face(group).allocate(kind.bytes, access == "rw")
    return memory.view(kind.dtype).view(kind.shape)


def empty_like(
    tensor: torch.Tensor, access: str = "r", group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    """As empty(), with the shape and the dtype of this tensor."""
    return empty(tuple(tensor.shape), dtype=tensor.dtype, access=access, group=group)


class Exposure:
    """A tensor that others can open by its name. It ends with revoke(), not with this object."""

    def __init__(self, name: str, tensor: torch.Tensor, group: dist.ProcessGroup | None) -> None:
        self.name = name
        self.tensor = tensor
        self._face = face(group)

    @property
    def notified(self) -> int:
        """The largest number with which anybody has notified of a write so far; 0: nobody has."""
        return self._face.notified(self.name)

    def wait_notify(self, at_least: int, timeout: float = 60.0) -> int:
        """Waits until a write was notified of with this number or a larger one; returns `notified`.

        What was written before that notification can be seen then. timeout: in seconds.
        Raises TimeoutError, and ValueError once it is revoked.
        """
        self.wait_notify_async(at_least, timeout).wait()
        return self.notified

    def wait_notify_async(self, at_least: int, timeout: float = 60.0) -> RemoteWork[None]:
        """The same as a work."""
        check_timeout(timeout)
        if at_least < 1:
            raise ValueError(f"at_least={at_least}; writes are notified of from 1 on")
        return RemoteWork(self._face.wait_notified(self.name, at_least, timeout), nothing)

    def fetch_add(self, index: int | tuple[int, ...], value: int) -> int:
        """The owner's own RemoteTensor.fetch_add: adds to tensor[index], returns what it was.

        index: of one element. Any thread. Raises as RemoteTensor.fetch_add, and IndexError.
        """
        element = self._element(index)
        before = self._face.fetch_add(element, to_word("value", value, element.dtype))
        return from_word(before, element.dtype)

    def compare_swap(self, index: int | tuple[int, ...], expected: int, desired: int) -> int:
        """The owner's own RemoteTensor.compare_swap. index: as fetch_add() has it."""
        element = self._element(index)
        dtype = element.dtype
        words = to_word("expected", expected, dtype), to_word("desired", desired, dtype)
        return from_word(self._face.compare_swap(element, *words), dtype)

    def _element(self, index: int | tuple[int, ...]) -> torch.Tensor:
        element = self.tensor[index]
        check_word(kind_of(element), self.name)
        return element

    def revoke(self, timeout: float = 10.0) -> list[str]:
        """Takes the name back, and has all who opened it stop; theirs raises RevokedError then.

        timeout: in seconds, for those who are still reading or writing. The list names who has not
        stopped by then. Who of them may write is cut off: what they still write changes nothing in
        the tensor. This process must not write there while this runs, and everybody has to open
        anew what else is exposed of the same memory. Any thread.
        Raises ValueError if it was revoked before, and OSError if there is no memory to cut off
        with: the tensor's bytes are copied.
        """
        check_timeout(timeout)
        return self._face.revoke(self.name, timeout)


def expose(
    tensor: torch.Tensor,
    name: str,
    access: str = "r",
    move: bool = False,
    group: dist.ProcessGroup | None = None,
) -> Exposure:
    """Lets all of the job open the tensor under this name, to read ("r") or also write it ("rw").

    The tensor lies in memory of remote.empty(), or is a part of one. move: moves one that does not
    into such memory first, in place: shape and values stay; views that were made of it before keep
    the old memory. group: by which others are reached; None is the default group. Any thread.
    Raises ValueError for a name that is taken, a tensor that is elsewhere without move=True or not
    contiguous, and for access="rw" to memory that was made for reading.
    """
    check_access(access)
    check_name(name)
    check_tensor("tensor", tensor)
    of_process = face(group)
    if not of_process.holds(tensor):
        if not move:
            raise ValueError(
                f"the tensor for name={name!r} is in ordinary memory, which cannot have rights of "
                "its own; make it with remote.empty(), or pass move=True to have it moved"
            )
        _move(tensor, access, group)
    of_process.expose(name, tensor, access == "rw", kind_of(tensor).encode())
    return Exposure(name, tensor, group)


def _move(tensor: torch.Tensor, access: str, group: dist.ProcessGroup | None) -> None:
    storage = tensor.untyped_storage()
    if tensor.is_shared() or not storage.resizable():
        raise ValueError(
            "the tensor's memory is shared with others (share_memory_(), numpy), from whom moving "
            "would take it; clone() it, or make it with remote.empty()"
        )
    memory = empty(storage.nbytes(), dtype=torch.uint8, access=access, group=group)
    memory.untyped_storage().copy_(storage)
    place = (tensor.storage_offset(), tensor.size(), tensor.stride())
    with torch.no_grad():
        tensor.set_(memory.untyped_storage(), *place)
