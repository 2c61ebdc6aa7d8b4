"""Caller: a connection to the agent, from the first byte of its message to the last of its answer.

What the messages mean is in rendezvous.py, which has the protocol.
Floor: launcher/agent. Thread: the agent's; nothing blocks.
"""

import selectors
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from rdmacoll.base.agent_protocol import HELLO

PAYLOAD_LIMIT_BYTES = 1 << 16
SILENCE_S = 60.0  # the longest wait for a whole message, or for an answer to be read
_U32 = struct.Struct("<I")


class ProtocolError(ValueError):
    """What a caller has sent is wrong. It gets the text of this error as its answer."""


@dataclass(frozen=True)
class Message:
    magic: bytes
    rank: int
    world: int
    payload: bytes


def packed(text: bytes) -> bytes:
    return _U32.pack(len(text)) + text


class Caller:
    def __init__(
        self,
        sock: socket.socket,
        pid: int,
        selector: selectors.BaseSelector,
        hear: Callable[["Caller", Message], None],
        on_gone: Callable[["Caller"], None],
    ) -> None:
        sock.setblocking(False)
        self.pid = pid
        self.may_leave = False  # its message stays valid if it hangs up before the answer
        self._sock = sock
        self._selector = selector
        self._hear = hear
        self._on_gone = on_gone
        self._received = bytearray()
        self._to_send = b""
        self._is_heard = False
        self._deadline: float | None = time.monotonic() + SILENCE_S
        selector.register(sock, selectors.EVENT_READ, self._read)

    @property
    def is_open(self) -> bool:
        return self._sock.fileno() >= 0

    @property
    def deadline(self) -> float | None:
        """When to hang up on it; None while the agent owes it an answer."""
        return self._deadline if self.is_open else None

    def give(self, *texts: bytes) -> None:
        """Accepts its message. Sends these texts as it reads them, and then closes."""
        self._answer(_U32.pack(0) + b"".join(texts))

    def refuse(self, text: str) -> None:
        """Refuses its message: sends why, and then closes."""
        self._answer(_U32.pack(1) + packed(text.encode()))

    def close(self) -> None:
        if self.is_open:
            self._selector.unregister(self._sock)
            self._sock.close()

    def _answer(self, data: bytes) -> None:
        if self.is_open:
            self._to_send = data
            self._deadline = time.monotonic() + SILENCE_S
            self._selector.modify(self._sock, selectors.EVENT_WRITE, self._write)

    def _read(self) -> None:
        try:
            data = self._sock.recv(PAYLOAD_LIMIT_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if not (self._is_heard and self.may_leave):
                self._on_gone(self)
            self.close()
            return
        self._received += data
        try:
            self._parse()
        except ProtocolError as error:
            self._on_gone(self)
            self.refuse(str(error))

    def _parse(self) -> None:
        if len(self._received) < HELLO.size:
            return
        magic, rank, world, length = HELLO.unpack_from(self._received)
        if not magic.startswith(b"RDMACOL"):
            raise ProtocolError("this is rdmarun's rendezvous; it expects b'RDMACOL1' first")
        if length > PAYLOAD_LIMIT_BYTES:
            raise ProtocolError(f"a payload of {length} bytes: the limit is {PAYLOAD_LIMIT_BYTES}")
        payload = bytes(self._received[HELLO.size :])
        if len(payload) > length or self._is_heard:
            raise ProtocolError(f"rank {rank} sent more than its payload of {length} bytes")
        if len(payload) == length:
            self._is_heard = True
            self._deadline = None
            self._hear(self, Message(magic, rank, world, payload))

    def _write(self) -> None:
        try:
            self._to_send = self._to_send[self._sock.send(self._to_send) :]
        except BlockingIOError:
            return
        except OSError:  # the rank is gone, which the agent learns from the process
            self._to_send = b""
        if not self._to_send:
            self.close()
