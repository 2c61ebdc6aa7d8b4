"""The agent's unix socket, where the ranks of its host exchange their payloads with the world, and
ranks and helpers are told the job's secret.

Protocol, for whoever writes a client (all integers little endian, u32):
  The address is in RDMACOLL_AGENT: @name is the abstract socket "\\0name", which leaves nothing
  behind; the name is rdmacoll-PID-RANDOM, with the agent's process id. A connection carries one
  message. Exchanges: the k-th of a job takes the k-th such connection of every rank of
  the world, so all ranks make them in the same order.
  rank -> agent    "RDMACOL1"  rank  world  length  payload (`length` bytes, at most 65536)
               or  "RDMACOL0"  with the same behind it, and closes: for the others only
               or  "RDMACOLS"  any  any  0: it asks for the job's secret, in no exchange
               or  "RDMACOLJ"  rank  world  0: it has joined the group of the others
               or  "RDMACOLI"  0  0  0: it asks which rank or helper it is
               or  "RDMACOLT"  0  0  0: the mount is there
               or  "RDMACOLD"  0  0  0: it asks what all ranks of the job are doing
  agent -> rank    0  world  then for each rank in order: length  payload
               or  0  length  secret, for who asked for that
               or  0  length  JSON (agent_protocol.py, Identity), for who asked which it is
               or  0  length  JSON (agent_protocol.py, ask_dumps), for who asked for that
               or  1  length  error text (UTF-8)
  The agent answers when every rank of the world has sent its payload (or at once if that cannot
  happen any more) and closes. A rank that gives up waiting closes first, and may come again; the
  payload of one that does not wait stays.
Only processes that the agent started as ranks, and that still live, are served: not their children,
who have inherited RDMACOLL_AGENT and may be of another job. Helpers that the agent started, servers
and the mount, are told the secret and which one they are, and no more. What the ranks are doing is
told to any process of this user. Other users are not even answered.
Floor: launcher/agent. Thread: the agent's; nothing blocks.
"""

import os
import secrets
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable

from rdmacoll.base.agent_protocol import (
    MAGIC_DUMPS,
    MAGIC_IDENTITY,
    MAGIC_JOINED,
    MAGIC_THERE,
    Identity,
    address_of,
)
from rdmacoll.base.peer_user import peer_of, same_user

from .caller import Caller, Message, ProtocolError, packed
from .rank_env import Attempt

MAGIC = b"RDMACOL1"
MAGIC_ONE_WAY = b"RDMACOL0"
MAGIC_SECRET = b"RDMACOLS"
CALLERS_OF_A_PROCESS = 64  # at a time
_U32 = struct.Struct("<I")


def pack(payloads: dict[int, bytes]) -> bytes:
    """The payloads of a host's ranks, as agents send them to each other."""
    return b"".join(struct.pack("<II", r, len(own)) + own for r, own in payloads.items())


def unpack(data: bytes) -> dict[int, bytes]:
    payloads, at = {}, 0
    while at < len(data):
        rank, length = struct.unpack_from("<II", data, at)
        payloads[rank] = data[at + 8 : at + 8 + length]
        at += 8 + length
    return payloads


class Rendezvous:
    """The exchanges of this host's ranks, one after the other."""

    def __init__(
        self,
        ranks: range,
        world: int,
        attempt: Attempt,
        rank_of: Callable[[int], int | None],
        helper_of: Callable[[int], str | None],
        on_there: Callable[[int], None],
        selector: selectors.BaseSelector,
        ask_dumps: Callable[[Caller], None],
    ) -> None:
        """rank_of, helper_of: which has this process id; None if none that lives has it.
        on_there: told that the helper of this process id is there.
        ask_dumps: answers a caller, later, what all ranks of the job are doing.
        """
        self._world = world
        self._attempt = attempt
        self._rank_of = rank_of
        self._helper_of = helper_of
        self._on_there = on_there
        self._ask_dumps = ask_dumps
        self._selector = selector
        self._callers: list[Caller] = []
        self._waiting: dict[int, deque[tuple[Caller, bytes]]] = {rank: deque() for rank in ranks}
        self._current: dict[int, tuple[Caller, bytes]] | None = None
        self._error: str | None = None
        self.exchange = 0
        self.joined: set[int] = set()  # ranks that have said so; whoever reads it clears it
        self.address = address_of(os.getpid(), secrets.token_hex(8))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind("\0" + self.address[1:])
        self._listener.listen(socket.SOMAXCONN)
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def arrived(self) -> frozenset[int]:
        """The ranks whose payloads for the present exchange are here."""
        holds = self._waiting if self._current is None else self._current
        return frozenset(rank for rank, payloads in holds.items() if payloads)

    def payloads(self) -> bytes | None:
        """The payloads of all ranks of this host, once they are here; fixed from then on."""
        if self._current is None and all(self._waiting.values()):
            self._current = {rank: queue.popleft() for rank, queue in self._waiting.items()}
        if self._current is None:
            return None
        return pack({rank: payload for rank, (_, payload) in self._current.items()})

    def complete(self, payloads: dict[int, bytes]) -> None:
        """Answers the present exchange with the world's payloads and goes on to the next."""
        assert self._current is not None
        in_order = (payloads[rank] for rank in range(self._world))
        answer = _U32.pack(self._world) + b"".join(map(packed, in_order))
        for caller, _ in self._current.values():
            caller.give(answer)
        self._current = None
        self.exchange += 1

    def fail(self, text: str) -> None:
        """No exchange can succeed any more: tells who waits, and whoever comes."""
        self._error = text
        waiting = [caller for queue in self._waiting.values() for caller, _ in queue]
        waiting += [caller for caller, _ in (self._current or {}).values()]
        for caller in waiting:
            caller.refuse(text)

    @property
    def deadline(self) -> float | None:
        """When poll() has something to do."""
        return min((c.deadline for c in self._callers if c.deadline is not None), default=None)

    def poll(self) -> None:
        """Hangs up on callers that say nothing, or do not read their answer."""
        now = time.monotonic()
        for caller in self._callers:
            if caller.deadline is not None and caller.deadline <= now:
                caller.close()
        self._callers = [caller for caller in self._callers if caller.is_open]

    def close(self) -> None:
        """Lets nobody in any more, and hangs up on all who are in."""
        self._listener.close()
        for caller in self._callers:
            caller.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:  # the caller has hung up already
            return
        pid, user = peer_of(sock)
        self._callers = [caller for caller in self._callers if caller.is_open]
        of_process = sum(caller.pid == pid for caller in self._callers)
        if not same_user(user) or of_process >= CALLERS_OF_A_PROCESS:
            sock.close()
            return
        self._callers.append(Caller(sock, pid, self._selector, self._hear, self._on_gone))

    def _hear(self, caller: Caller, message: Message) -> None:
        if message.magic == MAGIC_DUMPS:  # of any process of this user
            self._ask_dumps(caller)
            return
        is_rank, helper = self._rank_of(caller.pid), self._helper_of(caller.pid)
        if is_rank is None and helper is None:
            raise ProtocolError(
                f"process {caller.pid} is no rank that this agent has started; a child of one "
                "meets others in a Store of theirs (unset RDMACOLL_AGENT)"
            )
        if message.magic == MAGIC_IDENTITY:
            master, start = self._attempt.master, self._attempt.id
            which = Identity(is_rank, self._world, master.address, master.port, start, helper)
            caller.give(packed(which.to_bytes()))
            return
        if message.magic == MAGIC_SECRET:  # for any group, also one that numbers its ranks anew
            caller.give(packed(self._attempt.secret))
            return
        if is_rank is None and message.magic == MAGIC_THERE:
            self._on_there(caller.pid)
            caller.close()
            return
        if is_rank is None:
            raise ProtocolError(
                f"process {caller.pid} is {helper}, and no rank: it takes part in no exchange of "
                "ranks"
            )
        if message.rank != is_rank:
            raise ProtocolError(
                f"process {caller.pid} is rank {is_rank} and says that it is rank {message.rank}"
            )
        if message.magic == MAGIC_JOINED:
            self.joined.add(is_rank)
            caller.close()
        else:
            self._take_card(caller, message)

    def _take_card(self, caller: Caller, message: Message) -> None:
        if message.magic not in (MAGIC, MAGIC_ONE_WAY):
            raise ProtocolError(f"{message.magic!r} is no message of the agent's protocol")
        if message.world != self._world:
            raise ProtocolError(
                f"rank {message.rank} says the world has {message.world} ranks; it has "
                f"{self._world}"
            )
        if self._error is not None:
            raise ProtocolError(self._error)
        caller.may_leave = message.magic == MAGIC_ONE_WAY
        self._waiting[message.rank].append((caller, message.payload))

    def _on_gone(self, caller: Caller) -> None:
        for queue in self._waiting.values():
            for entry in [entry for entry in queue if entry[0] is caller]:
                queue.remove(entry)
