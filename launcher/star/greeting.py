"""How a link begins: both ends prove that they know the job's key, before either says anything.

  hub -> spoke     a nonce (32 bytes)
  spoke -> hub     "RDMASTAR"  seat (u32)  a nonce (32 bytes)  proof (32 bytes)
  hub -> spoke     a first beat, signed under the key of the connection, which both derive
The proof and the connection's key are of both nonces and of the seat: neither is good for another
connection. Floor: launcher/star. Thread: the agent's, or rdmarun's.
"""

import hmac
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from rdmacoll.launcher.keys.key import Key

from .link import Kind, Link, LinkEnded
from .place import Place

STRANGERS = 64  # that the hub listens to at a time
GREETING_S = 5.0  # the longest that one may take
PAUSE_S = 0.1  # between attempts to reach the hub
NONCE_BYTES = 32
_GREETING = struct.Struct("<8sI32s32s")
_MAGIC = b"RDMASTAR"


def _proof(key: Key, nonces: bytes, seat: int) -> bytes:
    return key.sign("seat in the star", nonces, str(seat).encode())


def _link_key(key: Key, nonces: bytes, seat: int) -> bytes:
    return key.sign("link of the star", nonces, str(seat).encode())


def dial(key: Key, seat: int, place: Place, until: float) -> Link:
    """A link to the hub. OSError says why there is none until then (time.monotonic)."""
    while True:
        addresses, why = _look_up(place.hosts)
        for number, address in enumerate(addresses):
            # Every address has its turn, however many swallow what is sent to them.
            share_s = (until - time.monotonic()) / (len(addresses) - number)
            try:
                return _greet(key, seat, (address, place.port), share_s)
            except OSError as error:
                why.append(f"{address}: {error}")
        if time.monotonic() + PAUSE_S >= until:
            raise OSError(f"agent 0 cannot be reached on port {place.port} ({'; '.join(why)})")
        time.sleep(PAUSE_S)


def _look_up(hosts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The addresses of these names and addresses, each once; and why some have none."""
    addresses, why = [], []
    for host in hosts:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            why.append(f"{host}: {error}")
        else:
            addresses += [str(sockaddr[0]) for *_, sockaddr in found]
    return list(dict.fromkeys(addresses)), why


def _greet(key: Key, seat: int, address: tuple[str, int], connect_s: float) -> Link:
    sock = socket.create_connection(address, timeout=max(0.01, min(connect_s, GREETING_S)))
    try:
        sock.settimeout(GREETING_S)
        theirs = _read_exactly(sock, NONCE_BYTES)
        mine = secrets.token_bytes(NONCE_BYTES)
        sock.sendall(_GREETING.pack(_MAGIC, seat, mine, _proof(key, theirs + mine, seat)))
        link = Link(sock, _link_key(key, theirs + mine, seat), from_hub=False)
        _wait_for_beat(link)
        return link
    except OSError:
        sock.close()
        raise


def _wait_for_beat(link: Link) -> None:
    until = time.monotonic() + GREETING_S
    with selectors.DefaultSelector() as selector:
        selector.register(link, selectors.EVENT_READ)
        while selector.select(max(0.0, until - time.monotonic())):
            if any(kind is Kind.BEAT for kind, _ in link.receive()):
                return
    raise LinkEnded("it does not answer a greeting")


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            raise LinkEnded("it hung up on a greeting")
        data += part
    return data


class Stranger:
    """Who has connected, and has not proved anything."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.nonce = secrets.token_bytes(NONCE_BYTES)
        self.until = time.monotonic() + GREETING_S
        self.said = b""
        with suppress(OSError):  # the end is seen at the first read
            sock.send(self.nonce)  # all of it: the buffer is empty


class Listener:
    """The hub's port, at all its addresses: it costs a stranger's few bytes and seconds, of so many
    at a time."""

    def __init__(
        self,
        socks: Sequence[socket.socket],
        key: Key,
        selector: selectors.BaseSelector,
        admit: Callable[[int, Link], bool],
    ) -> None:
        """admit: gets who has proved the key, with the seat; False sends it away."""
        self._socks = socks
        self._key = key
        self._selector = selector
        self._admit = admit
        self._strangers: list[Stranger] = []
        for sock in socks:
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_READ, partial(self._accept, sock))

    @property
    def deadline(self) -> float | None:
        return self._strangers[0].until if self._strangers else None

    def poll(self) -> None:
        """Sends those away who take too long."""
        while self._strangers and self._strangers[0].until <= time.monotonic():
            self._send_away(self._strangers[0])

    def close(self) -> None:
        """Sends all away who have proved nothing."""
        while self._strangers:
            self._send_away(self._strangers[0])
        for sock in self._socks:
            self._selector.unregister(sock)
            sock.close()

    def _accept(self, listening: socket.socket) -> None:
        try:
            sock, _ = listening.accept()
        except OSError:  # who has hung up already
            return
        if len(self._strangers) == STRANGERS:
            self._send_away(self._strangers[0])
        stranger = Stranger(sock)
        self._strangers.append(stranger)
        self._selector.register(sock, selectors.EVENT_READ, lambda: self._hear(stranger))

    def _hear(self, stranger: Stranger) -> None:
        try:
            part = stranger.sock.recv(_GREETING.size - len(stranger.said))
        except BlockingIOError:
            return
        except OSError:
            part = b""
        stranger.said += part
        if part and len(stranger.said) < _GREETING.size:
            return
        link = self._proved(stranger) if part else None
        if link is None:
            self._send_away(stranger)

    def _proved(self, stranger: Stranger) -> Link | None:
        magic, seat, nonce, proof = _GREETING.unpack(stranger.said)
        nonces = stranger.nonce + nonce
        if magic != _MAGIC or not hmac.compare_digest(proof, _proof(self._key, nonces, seat)):
            return None
        link = Link(stranger.sock, _link_key(self._key, nonces, seat), from_hub=True)
        self._forget(stranger)
        if self._admit(seat, link):
            link.send(Kind.BEAT)
        else:
            link.close()
        return link

    def _send_away(self, stranger: Stranger) -> None:
        self._forget(stranger)
        stranger.sock.close()

    def _forget(self, stranger: Stranger) -> None:
        self._strangers.remove(stranger)
        self._selector.unregister(stranger.sock)
