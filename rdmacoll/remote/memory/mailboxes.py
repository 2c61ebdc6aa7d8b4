"""Mailboxes: tensors of any shape, for a receiver that does not know what will come.

A letter says what a tensor is and where it lies. The receiver makes room for it, reads it from
there, and tells its sender: three messages and one read. Where the shapes are known, open() and
write() cost one. As *RPC Considered Harmful* (Xue et al., 2018) does it with tensors whose shape
the graph does not tell.
"""

from __future__ import annotations

import threading

import torch
import torch.distributed as dist

from .checks import check_name, check_tensor, check_timeout
from .errors import PeerError
from .kind import decode, kind_of
from .opening import DEFAULT_TIMEOUT_S, Owner, RemoteTensor, owner_of
from .process import face
from .works import RemoteWork, nothing


class Mailbox:
    """Where others post tensors to this process. It ends with close()."""

    def __init__(self, name: str, group: dist.ProcessGroup | None) -> None:
        self.name = name
        self._face = face(group)
        self._face.open_mailbox(name)

    def get(self, timeout: float = DEFAULT_TIMEOUT_S) -> torch.Tensor:
        """The next tensor that was posted; those of one sender come in their order.

        timeout: in seconds, until there is one. Any thread. Raises TimeoutError; PeerError, if its
        sender ends while it is read; ValueError once the mailbox is closed.
        """
        check_timeout(timeout)
        opened = self._face.take(self.name, timeout)
        kind = decode(opened.meta, None, "the sender")
        if max(kind.bytes, 1) != opened.nbytes:
            raise PeerError(f"a sender to {self.name!r} says what makes no sense of its tensor")
        return RemoteTensor(opened, kind, 0, self.name).read()

    def close(self) -> None:
        """Takes no more. Who has posted what was not taken yet gets RevokedError."""
        self._face.close_mailbox(self.name)


class Outbox:
    """A mailbox of another process, as this one posts to it. As open_mailbox() makes it."""

    def __init__(self, name: str, owner: Owner, group: dist.ProcessGroup | None) -> None:
        self.name = name
        self._owner = owner
        self._face = face(group)
        self._lock = threading.Lock()
        self._copies: list[
            tuple[RemoteWork[None], torch.Tensor]
        ] = []  # posted, and what they lie in

    def put(self, tensor: torch.Tensor, timeout: float = DEFAULT_TIMEOUT_S) -> None:
        """Posts the tensor, and waits until the receiver has it.

        One that is not in memory of remote.empty() is copied into some first. timeout: in seconds.
        Any thread. Raises ValueError for a tensor that is not dense on the CPU; TimeoutError, if
        the other has no such mailbox, or has not taken it in time, and may still do so;
        RevokedError, if the mailbox was closed; PeerError.
        """
        self.put_async(tensor, timeout).wait()

    def put_async(
        self, tensor: torch.Tensor, timeout: float = DEFAULT_TIMEOUT_S
    ) -> RemoteWork[None]:
        """The same as a work, once the letter is in the mailbox.

        A tensor in memory of remote.empty() must not be changed before it has ended.
        """
        check_timeout(timeout)
        check_tensor("tensor", tensor)
        if tensor.nbytes > 0 and self._face.holds(tensor):
            return self._post(tensor, tensor, timeout)
        copy = self._memory_for(tensor.nbytes)
        copy[: tensor.nbytes].view(tensor.dtype).view(tensor.shape).copy_(tensor.detach())
        work = self._post(tensor, copy[: max(tensor.nbytes, 1)], timeout)
        with self._lock:
            self._copies.append((work, copy))
        return work

    def _post(self, tensor: torch.Tensor, where: torch.Tensor, timeout: float) -> RemoteWork[None]:
        meta = kind_of(tensor).encode()
        to = self._owner
        work = self._face.post(to.address, to.who, self.name, where, meta, timeout)
        return RemoteWork(work, nothing)

    def _memory_for(self, size_bytes: int) -> torch.Tensor:
        """That of a tensor which was taken; one that was not, in time, may still be read."""
        with self._lock:
            ended = [pair for pair in self._copies if pair[0].done()]
            self._copies = [pair for pair in self._copies if not pair[0].done()]
        for work, memory in ended:
            try:
                work.wait()
            except OSError:
                continue
            if memory.nbytes >= size_bytes:
                return memory
        return self._face.allocate(max(size_bytes, 1), False)


def mailbox(name: str, group: dist.ProcessGroup | None = None) -> Mailbox:
    """Takes tensors of any shape and dtype that others post under this name.

    group: by which others reach this process; None is the default group. Any thread.
    Raises ValueError for a name that is taken. 256 letters wait at most; who posts more waits.
    """
    check_name(name)
    return Mailbox(name, group)


def open_mailbox(
    name: str,
    on: int | None = None,
    at: str | None = None,
    group: dist.ProcessGroup | None = None,
) -> Outbox:
    """The mailbox of this name of a rank (`on`) or of an address (`at`), as of remote.open().

    Any thread; does not wait: put() does, until there is such a mailbox.
    """
    check_name(name)
    return Outbox(name, owner_of(on, at, group), group)
