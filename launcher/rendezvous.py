"""The agent's unix socket, where the ranks of its host exchange their cards with the world, and
are told the job's secret.

Protocol, for whoever writes a client (all integers little endian, u32):
  The address is in RDMACOLL_AGENT: @name is the abstract socket "\\0name" (leaves nothing behind),
  anything else a path. A connection carries one exchange: the k-th exchange of a job takes the
  k-th connection of every rank of the world, so all ranks make them in the same order.
  rank -> agent    "RDMACOL1"  rank  world  length  card (`length` bytes, at most 65536)
               or  "RDMACOL0"  with the same behind it, and closes: for the others only
               or  "RDMACOLS"  rank  world  0: it asks for the job's secret, in no exchange
               or  "RDMACOLJ"  rank  world  0, and closes: it has joined the group of the others
  agent -> rank    0  world  then for each rank in order: length  card
               or  0  length  secret, for who asked for that
               or  1  length  error text (UTF-8)
  The agent answers when every rank of the world has sent its card (or at once if that cannot
  happen any more) and closes. A rank that gives up waiting closes first, and may come again; the
  card of one that does not wait stays.
Only processes of the agent's own user are let in.
Floor: launcher. Thread: the agent's; nothing blocks.
"""

import secrets
import selectors
import socket
import struct
from collections import deque
from collections.abc import Callable

from rdmacoll._peer_user import peer_of, same_user

MAGIC = b"RDMACOL1"
MAGIC_ONE_WAY = b"RDMACOL0"
MAGIC_SECRET = b"RDMACOLS"
MAGIC_JOINED = b"RDMACOLJ"
CARD_LIMIT_BYTES = 1 << 16
_HELLO = struct.Struct("<8sIII")
_U32 = struct.Struct("<I")


class ProtocolError(ValueError):
    """What a client sent is wrong; it gets the message as its answer."""


def pack_cards(cards: dict[int, bytes]) -> bytes:
    """The cards of a host's ranks, as agents send them to each other."""
    return b"".join(struct.pack("<II", r, len(card)) + card for r, card in cards.items())


def unpack_cards(data: bytes) -> dict[int, bytes]:
    cards, at = {}, 0
    while at < len(data):
        rank, length = struct.unpack_from("<II", data, at)
        cards[rank] = data[at + 8 : at + 8 + length]
        at += 8 + length
    return cards


def tell_joined(address: str, rank: int, world: int) -> None:
    """The rank's side: its agent counts it among those that are left from now on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        agent.connect("\0" + address[1:] if address.startswith("@") else address)
        agent.sendall(_HELLO.pack(MAGIC_JOINED, rank, world, 0))


class Client:
    """A connection, from the first byte of its card to the last of its answer."""

    def __init__(
        self,
        sock: socket.socket,
        selector: selectors.BaseSelector,
        on_card: Callable[["Client", int, int, bytes], None],
        on_gone: Callable[["Client"], None],
        on_joined: Callable[[int], None],
        secret: bytes,
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._selector = selector
        self._on_card = on_card
        self._on_gone = on_gone
        self._on_joined = on_joined
        self._secret = secret
        self._received = bytearray()
        self._to_send = b""
        self._has_card = False
        self._waits = True
        selector.register(sock, selectors.EVENT_READ, self._read)

    def answer(self, data: bytes) -> None:
        """Sends the answer and closes, in its own time."""
        if self._sock.fileno() >= 0:
            self._to_send = data
            self._selector.modify(self._sock, selectors.EVENT_WRITE, self._write)

    def refuse(self, text: str) -> None:
        message = text.encode()
        self.answer(_U32.pack(1) + _U32.pack(len(message)) + message)

    def close(self) -> None:
        if self._sock.fileno() >= 0:
            self._selector.unregister(self._sock)
            self._sock.close()

    def _read(self) -> None:
        try:
            data = self._sock.recv(CARD_LIMIT_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if self._waits or not self._has_card:
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
        if len(self._received) < _HELLO.size:
            return
        magic, rank, world, length = _HELLO.unpack_from(self._received)
        self._waits = magic != MAGIC_ONE_WAY
        if magic == MAGIC_SECRET:
            self.answer(_U32.pack(0) + _U32.pack(len(self._secret)) + self._secret)
            return
        if magic == MAGIC_JOINED:
            self._on_joined(rank)
            self.close()
            return
        if magic not in (MAGIC, MAGIC_ONE_WAY):
            raise ProtocolError(f"this is rdmarun's rendezvous; it expects {MAGIC!r} first")
        if length > CARD_LIMIT_BYTES:
            raise ProtocolError(f"a card of {length} bytes: the limit is {CARD_LIMIT_BYTES}")
        card = bytes(self._received[_HELLO.size :])
        if len(card) > length or self._has_card:
            raise ProtocolError(f"rank {rank} sent more than its card of {length} bytes")
        if len(card) == length:
            self._has_card = True
            self._on_card(self, rank, world, card)

    def _write(self) -> None:
        try:
            self._to_send = self._to_send[self._sock.send(self._to_send) :]
        except BlockingIOError:
            return
        except OSError:  # the rank is gone, which the agent learns from the process
            self._to_send = b""
        if not self._to_send:
            self.close()


class Rendezvous:
    """The exchanges of this host's ranks, one after the other."""

    def __init__(
        self, ranks: range, world: int, secret: bytes, selector: selectors.BaseSelector
    ) -> None:
        self._world = world
        self._secret = secret
        self._selector = selector
        self._waiting: dict[int, deque[tuple[Client, bytes]]] = {rank: deque() for rank in ranks}
        self._current: dict[int, tuple[Client, bytes]] | None = None
        self._error: str | None = None
        self.exchange = 0
        self.joined: set[int] = set()  # who has said that it is in the group, since it was taken
        name = f"rdmacoll-{secrets.token_hex(8)}"
        self.address = f"@{name}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{name}")
        self._listener.listen(len(ranks))
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def arrived(self) -> frozenset[int]:
        """The ranks whose cards for the present exchange are here."""
        holds = self._waiting if self._current is None else self._current
        return frozenset(rank for rank, cards in holds.items() if cards)

    def cards(self) -> bytes | None:
        """The cards of all ranks of this host, once they are here; fixed from then on."""
        if self._current is None and all(self._waiting.values()):
            self._current = {rank: queue.popleft() for rank, queue in self._waiting.items()}
        if self._current is None:
            return None
        return pack_cards({rank: card for rank, (_, card) in self._current.items()})

    def complete(self, cards: dict[int, bytes]) -> None:
        """Answers the present exchange with the world's cards and goes on to the next."""
        assert self._current is not None
        in_order = (cards[rank] for rank in range(self._world))
        answer = _U32.pack(0) + _U32.pack(self._world)
        answer += b"".join(_U32.pack(len(card)) + card for card in in_order)
        for client, _ in self._current.values():
            client.answer(answer)
        self._current = None
        self.exchange += 1

    def fail(self, text: str) -> None:
        """No exchange can succeed any more: tells who waits, and whoever comes."""
        self._error = text
        waiting = [client for queue in self._waiting.values() for client, _ in queue]
        waiting += [client for client, _ in (self._current or {}).values()]
        for client in waiting:
            client.refuse(text)

    def close(self) -> None:
        """Nobody is let in any more."""
        self._listener.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:  # gone before we came
            return
        if not same_user(peer_of(sock)[1]):
            sock.close()
            return
        Client(sock, self._selector, self._on_card, self._on_gone, self.joined.add, self._secret)

    def _on_card(self, client: Client, rank: int, world: int, card: bytes) -> None:
        if world != self._world:
            raise ProtocolError(
                f"rank {rank} says the world has {world} ranks; it has {self._world}"
            )
        own = ", ".join(map(str, self._waiting))
        if rank not in self._waiting:
            raise ProtocolError(f"rank {rank} is not of this host, which has ranks {own}")
        if self._error is not None:
            raise ProtocolError(self._error)
        self._waiting[rank].append((client, card))

    def _on_gone(self, client: Client) -> None:
        for queue in self._waiting.values():
            for entry in [entry for entry in queue if entry[0] is client]:
                queue.remove(entry)
