"""torch's one-sided transports (torch.distributed._transport of torch 2.15) over remote memory.

The only file that knows that interface: the entry point `rdmacoll` of torch.distributed.transports
imports it, and with an older torch that raises ImportError. Any dense CPU tensor may be the local
end of a transfer. The remote end is memory that others can reach, so remote.empty() has made it.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
import uuid
from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist

from ..memory.checks import check_tensor, check_timeout
from ..memory.exposing import Exposure, empty, expose
from ..memory.opening import RemoteTensor, address, open
from ..memory.process import face
from ..memory.works import RemoteWork, nothing
from .alone import default_group_or_own
from .descriptors import RdmaRemoteBuffer, Url, decode, encode
from .torch_work import LEAST_WAIT, RdmaWork
from .transport_memory import RdmaMemory, RdmaMemoryView, RdmaMutableMemoryView, Registration

try:
    from torch.distributed._transport import Transport
except ImportError as error:
    raise ImportError(
        f"rdmacoll's transport is one of torch.distributed._transport, which torch "
        f"{torch.__version__} does not have; install torch 2.15, or use rdmacoll.remote as it is"
    ) from error

# A timeout ends its caller's wait and not the transfer. This ends a transfer that nothing else
# ends: to a peer that neither answers nor dies.
LIFETIME_S = 1800.0


class RdmaTransport(Transport):
    """torch's Transport over shared memory, verbs or tcp, as rdmacoll reaches the peer.

    device: None or "cpu". timeout: in seconds, of calls that name none. group: by which others are
    reached. None is the default group, if that is of the backend rdma, and otherwise one of this
    process alone, for which rdmarun or RDMACOLL_SECRET_FILE gives both sides the same secret.
    Raises ValueError for another device, and where there is neither group nor secret.
    """

    def __init__(
        self,
        device: torch.device | str | None = None,
        *,
        timeout: float = 30.0,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__(device)
        if self.device is not None and self.device.type != "cpu":
            raise ValueError(f"device={device!r}; rdmacoll's transport is for tensors on the CPU")
        self.group = group or default_group_or_own()
        self._default_timeout: float = _seconds(timeout)
        self._id = uuid.uuid4().hex
        self._lock = threading.Lock()  # what follows; not held in a wait
        self._registrations: dict[tuple[int, int], Registration] = {}
        self._pending: deque[tuple[RdmaWork, Registration]] = deque()
        self._opened: dict[str, RemoteTensor] = {}
        self._shown = 0
        self._door: Exposure | None = None  # what a peer opens to connect
        self._peer: Url | None = None
        self._closing = False

    @staticmethod
    def supported() -> bool:
        """Wherever rdmacoll is. Whether there is a group or a secret the constructor finds out."""
        return True

    # --- the peer ---------------------------------------------------------------------------------

    def bind(self, *, timeout: float | None = None) -> bytes:
        """Where this transport is. It does not wait."""
        self._check_open()
        with self._lock:
            if self._door is None:
                word = empty(1, dtype=torch.uint8, group=self.group)
                self._door = expose(word, _door_of(self._id), group=self.group)
        return encode(Url(self._id, address(self.group)))

    def connect(self, peer_url: bytes, *, timeout: float | None = None) -> int:
        """Returns 0 once the process of the peer, which has bound, has answered.

        Raises ValueError for bytes that bind() has not made, TimeoutError, PeerError.
        """
        seconds = self._seconds(timeout)
        self._check_open()
        if self._peer is not None:
            raise RuntimeError("the transport is connected already; make one for each peer")
        peer = decode(Url, peer_url, "peer_url")
        name = _door_of(peer.owner)
        self._opened[name] = open(name, at=peer.address, timeout=seconds, group=self.group)
        self._peer = peer
        return 0

    def connected(self) -> bool:
        return self._peer is not None and not self._closing

    # --- memory -----------------------------------------------------------------------------------

    def register_memory(self, tensor: torch.Tensor, *, timeout: float | None = None) -> RdmaMemory:
        """It stays where it is, and nobody else reaches it before to_remote_buffer().

        Raises TypeError and ValueError for what is no dense, contiguous CPU tensor with elements.
        """
        self._check_open()
        check_tensor("tensor", tensor)
        if tensor.numel() == 0:
            raise ValueError("tensor has no elements, so there is nothing to register")
        data = tensor.detach().reshape(-1).view(torch.uint8)
        with self._lock:
            place = data.data_ptr(), data.nbytes
            registration = self._registrations.setdefault(place, Registration(tensor, data))
        return RdmaMemory(self, registration)

    def unregister_memory(self, memory: RdmaMemory, *, timeout: float | None = None) -> None:
        """Nobody opens it any more; a transfer of the peer's to it raises RevokedError.

        Raises RuntimeError while a transfer from here uses it, and TimeoutError if the peer does
        not stop using it: then it may be called again.
        """
        seconds = self._seconds(timeout)
        self._check_open()
        if not isinstance(memory, RdmaMemory) or memory.transport is not self:
            raise TypeError("memory was not registered by this transport")
        with self._lock:
            pending = list(self._pending)
        if any(of is memory.registration and not work.is_completed() for work, of in pending):
            raise RuntimeError("memory has transfers in flight; wait for them first")
        self._take_back(memory.registration, seconds)

    def show(self, registration: Registration) -> RdmaRemoteBuffer:
        """Lets the peer open it from now on."""
        self._check_open()
        registration.check()
        data = registration.data
        with self._lock:
            if registration.buffer is not None:
                return registration.buffer
            if not face(self.group).holds(data):
                raise ValueError(
                    "the tensor is in ordinary memory, which no other process can reach; make it "
                    'with rdmacoll.remote.empty(..., access="rw", group=transport.group) instead'
                )
            self._shown += 1
            name = f"{_door_of(self._id)}/{self._shown}"
            try:
                registration.exposure = expose(data, name, "rw", group=self.group)
            except ValueError:  # it was made for reading alone
                registration.exposure = expose(data, name, "r", group=self.group)
                writable = False
            else:
                writable = True
            registration.buffer = RdmaRemoteBuffer(self._id, name, data.nbytes, writable)
            return registration.buffer

    def _take_back(self, registration: Registration, seconds: float) -> None:
        exposure, registration.exposure, registration.buffer = registration.exposure, None, None
        if exposure is not None:
            exposure.revoke(seconds)
        registration.active = False
        with self._lock:
            self._registrations.pop((registration.data.data_ptr(), registration.data.nbytes), None)

    # --- transfers --------------------------------------------------------------------------------

    def write(
        self,
        local_buffer: RdmaMemoryView,
        remote_buffer: RdmaRemoteBuffer,
        *,
        async_op: bool = False,
        timeout: float | None = None,
    ) -> int | RdmaWork:
        """Writes the view from the first byte of the peer's memory on, and ends when it is there.

        Returns 0, or for async_op a work. Raises TypeError for what is not of rdmacoll, ValueError
        for what does not fit or is for reading, TimeoutError, RevokedError, PeerError.
        """
        return self._start(local_buffer, remote_buffer, False, async_op, timeout)

    def read(
        self,
        local_buffer: RdmaMutableMemoryView,
        remote_buffer: RdmaRemoteBuffer,
        *,
        async_op: bool = False,
        timeout: float | None = None,
    ) -> int | RdmaWork:
        """Fills the view with what begins the peer's memory. As write()."""
        return self._start(local_buffer, remote_buffer, True, async_op, timeout)

    async def write_async(
        self,
        local_buffer: RdmaMemoryView,
        remote_buffer: RdmaRemoteBuffer,
        *,
        timeout: float | None = None,
    ) -> None:
        """As write(), for an event loop."""
        left = await self._open_aside(local_buffer, remote_buffer, False, timeout)
        await super().write_async(local_buffer, remote_buffer, timeout=left)

    async def read_async(
        self,
        local_buffer: RdmaMutableMemoryView,
        remote_buffer: RdmaRemoteBuffer,
        *,
        timeout: float | None = None,
    ) -> None:
        """As read(), for an event loop."""
        left = await self._open_aside(local_buffer, remote_buffer, True, timeout)
        await super().read_async(local_buffer, remote_buffer, timeout=left)

    # What is opened first waits for the peer, which must not stop an event loop.
    async def _open_aside(
        self,
        local_buffer: RdmaMemoryView,
        remote_buffer: RdmaRemoteBuffer,
        mutable: bool,
        timeout: float | None,
    ) -> float:
        end = time.monotonic() + self._seconds(timeout)
        self._check_transfer(local_buffer, remote_buffer, mutable=mutable)
        if remote_buffer.name not in self._opened:
            await asyncio.to_thread(self._open, remote_buffer, _left(end))
        return _left(end)

    def _start(
        self,
        local_buffer: RdmaMemoryView,
        remote_buffer: RdmaRemoteBuffer,
        mutable: bool,
        async_op: bool,
        timeout: float | None,
    ) -> int | RdmaWork:
        end = time.monotonic() + self._seconds(timeout)
        self._check_transfer(local_buffer, remote_buffer, mutable=mutable)
        data = local_buffer.data
        if data.nbytes == 0:
            work = RdmaWork(None, self._seconds(timeout))
        else:
            there = self._open(remote_buffer, _left(end))[: data.nbytes]
            work = self._begin(there, data, mutable, self._seconds(timeout))
        with self._lock:
            while self._pending and self._pending[0][0].is_completed():
                self._pending.popleft()
            self._pending.append((work, local_buffer.memory.registration))
        if async_op:
            return work
        work.wait(max(timedelta(seconds=_left(end)), LEAST_WAIT))
        return 0

    @staticmethod
    def _begin(there: RemoteTensor, data: torch.Tensor, mutable: bool, seconds: float) -> RdmaWork:
        if mutable:
            return RdmaWork(there.read_async(data, timeout=LIFETIME_S), seconds)
        # Whoever is told of a write, by whatever way, must see it: so it ends with a fence.
        fence = there._opened.fence
        written = there.write_async(data, timeout=LIFETIME_S)
        return RdmaWork(written, seconds, lambda: RemoteWork(fence(LIFETIME_S), nothing))

    def _check_transfer(
        self, local_buffer: RdmaMemoryView, remote_buffer: RdmaRemoteBuffer, *, mutable: bool
    ) -> None:
        self._check_open()
        kind = RdmaMutableMemoryView if mutable else RdmaMemoryView
        if not isinstance(local_buffer, kind) or local_buffer.memory.transport is not self:
            raise TypeError(
                f"local_buffer is no {kind.__name__} of this transport; register the tensor with it"
            )
        local_buffer.memory.registration.check()
        if not isinstance(remote_buffer, RdmaRemoteBuffer):
            raise TypeError(
                f"remote_buffer is a {type(remote_buffer).__name__}; give what the peer's "
                "to_remote_buffer() has returned"
            )
        if self._peer is None or remote_buffer.owner != self._peer.owner:
            raise ValueError("remote_buffer is not of the peer that this transport is connected to")
        if local_buffer.size() > remote_buffer.length:
            raise ValueError(
                f"local_buffer of {local_buffer.size()} bytes does not fit in remote_buffer, which "
                f"has {remote_buffer.length}"
            )
        if not mutable and not remote_buffer.writable:
            raise ValueError('remote_buffer is for reading; its owner makes it with access="rw"')

    def _open(self, remote_buffer: RdmaRemoteBuffer, seconds: float) -> RemoteTensor:
        name = remote_buffer.name
        with self._lock:
            if name in self._opened:
                return self._opened[name]
        assert self._peer is not None
        there = open(name, at=self._peer.address, timeout=seconds, group=self.group)
        with self._lock:
            return self._opened.setdefault(name, there)

    # --- the end ----------------------------------------------------------------------------------

    def close(self, *, timeout: float | None = None) -> None:
        """Waits for the transfers, takes all memory back, and raises what a transfer failed with.

        Raises TimeoutError if that takes longer: then nothing can be begun any more, and it may be
        called again.
        """
        end = time.monotonic() + self._seconds(timeout)
        self._close_cuda_streams()
        self._closing = True
        failure: Exception | None = None
        while self._pending:
            work, _ = self._pending[0]
            if not work.is_completed():
                try:
                    work.wait(max(timedelta(seconds=_left(end)), LEAST_WAIT))
                except Exception as error:
                    if not work.is_completed():
                        raise
                    failure = failure or error
            self._pending.popleft()
        for registration in list(self._registrations.values()):
            self._take_back(registration, _left(end))
        self._opened.clear()
        door, self._door = self._door, None
        if door is not None:
            door.revoke(_left(end))
        if failure is not None:
            raise failure

    async def close_async(self, *, timeout: float | None = None) -> None:
        """As close(), for an event loop."""
        await asyncio.to_thread(self.close, timeout=timeout)

    def _check_open(self) -> None:
        if self._closing:
            raise RuntimeError("the transport is closed; make another one")

    def _seconds(self, timeout: float | None) -> float:
        return self._default_timeout if timeout is None else _seconds(timeout)


def _seconds(timeout: float) -> float:
    check_timeout(timeout)
    if math.isinf(timeout):
        raise ValueError(f"timeout={timeout}; give a finite number of seconds")
    return timeout


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.0)


def _door_of(owner: str) -> str:
    return f"transport {owner}"
