"""A link: one TCP connection of the star. Each message is signed and numbered under a key that only
this connection has, so none can be forged, changed, repeated or left out.

A message is: length of the body (u32, little endian), kind (u8), body, signature (32 bytes).
Floor: launcher/star. Thread: the agent's, and one that only sends beats.
"""

import hmac
import socket
import struct
import threading
import time
from collections.abc import Iterator
from enum import IntEnum

BEAT_S = 1.0  # a link that has said nothing for so long says that its process lives
SILENCE_S = 5.0  # who has said nothing for so long is lost
CHUNK_BYTES = 1 << 18
BODY_LIMIT_BYTES = 1 << 30  # 16384 ranks with 64 KiB each
SIGNATURE_BYTES = 32
_HEAD = struct.Struct("<IB")


class Kind(IntEnum):
    BEAT = 0
    RECORD = 1  # to the hub: the sender's record in the table
    TABLE = 2  # from the hub: records that have changed
    PART = 3  # to the hub: a number of a gathering, and what the sender gives to it
    WHOLE = 4  # from the hub: that number, and what all have given
    TURN = 5  # from the hub: the port of MPI at which the receiver is to connect now
    WELCOME = 6  # from the hub, to who comes back: what has been missed
    OVER = 7  # from the hub to rdmarun: the job is over, as it should be
    START = 8  # from the hub to rdmarun: the agent to start again
    BACK = 9  # from the hub to rdmarun: the agent that is back
    MAIL = 10  # between the hub and an agent: what the star does not look into


class LinkEnded(ConnectionError):
    """There will be no more messages; the text says why, as a sentence goes on after a colon."""


class Link:
    def __init__(self, sock: socket.socket, key: bytes, from_hub: bool) -> None:
        """key: of this connection alone. from_hub: which of its two ends this is."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._key = key
        self._labels = (b"from hub", b"to hub") if from_hub else (b"to hub", b"from hub")
        self._lock = threading.Lock()  # of what is sent: beats come from another thread
        self._to_send = bytearray()
        self._sent = 0  # messages
        self._said_s = time.monotonic()
        self._received = bytearray()
        self._heard = 0
        self._heard_s = time.monotonic()

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        with self._lock:
            self._sock.close()

    @property
    def is_open(self) -> bool:
        return self._sock.fileno() >= 0

    @property
    def silent_at(self) -> float:
        """When it counts as lost if nothing comes."""
        return self._heard_s + SILENCE_S

    @property
    def wants_to_write(self) -> bool:
        return bool(self._to_send)

    def send(self, kind: Kind, body: bytes = b"") -> None:
        """What does not leave at once leaves in flush()."""
        with self._lock:
            self._append(kind, body)
            self._flush()

    def beat(self) -> None:
        """Says that this process lives, if it has just said nothing else."""
        with self._lock:
            if self.is_open and not self._to_send and time.monotonic() >= self._said_s + BEAT_S / 2:
                self._append(Kind.BEAT, b"")
                self._flush()

    def flush(self) -> None:
        with self._lock:
            self._flush()

    def receive(self) -> Iterator[tuple[Kind, bytes]]:
        """The messages that are here. LinkEnded when no more will come."""
        try:
            data = self._sock.recv(CHUNK_BYTES)
        except BlockingIOError:  # but an earlier call may have read more than was taken
            pass
        except OSError as error:
            raise LinkEnded(f"its agent's connection ended ({error.strerror})") from None
        else:
            if not data:
                raise LinkEnded("its agent's connection ended")
            self._heard_s = time.monotonic()
            self._received += data
        while (message := self._next()) is not None:
            yield message

    def _next(self) -> tuple[Kind, bytes] | None:
        if len(self._received) < _HEAD.size:
            return None
        length, kind = _HEAD.unpack_from(self._received)
        end = _HEAD.size + length
        if length > BODY_LIMIT_BYTES:
            raise self._broken()
        if len(self._received) < end + SIGNATURE_BYTES:
            return None
        body = bytes(self._received[_HEAD.size : end])
        signature = bytes(self._received[end : end + SIGNATURE_BYTES])
        del self._received[: end + SIGNATURE_BYTES]
        if not hmac.compare_digest(self._sign(self._labels[1], self._heard, kind, body), signature):
            raise self._broken()
        self._heard += 1
        try:
            return Kind(kind), body
        except ValueError:
            raise LinkEnded("its agent is of another version of rdmacoll") from None

    def _broken(self) -> LinkEnded:
        return LinkEnded("somebody on the way has changed what its agent said")

    def _append(self, kind: Kind, body: bytes) -> None:
        signature = self._sign(self._labels[0], self._sent, kind, body)
        self._to_send += _HEAD.pack(len(body), kind) + body + signature
        self._sent += 1
        self._said_s = time.monotonic()

    def _flush(self) -> None:
        try:
            while self._to_send:
                del self._to_send[: self._sock.send(self._to_send)]
        except BlockingIOError:
            pass
        except OSError:  # the connection has ended, which receive() says
            self._to_send.clear()

    def _sign(self, label: bytes, number: int, kind: int, body: bytes) -> bytes:
        return hmac.digest(self._key, struct.pack("<8sQB", label, number, kind) + body, "sha256")
