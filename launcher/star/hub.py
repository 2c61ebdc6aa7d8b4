"""The hub: agent 0's side of the star. It puts together what the agents say, and passes it on.

Floor: launcher/star. Thread: the agent's.
"""

import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rdmacoll.launcher.base.comm import Gathering
from rdmacoll.launcher.keys.key import Key

from .greeting import Listener
from .link import Kind, Link
from .wires import Wires

_U32 = struct.Struct("<I")


def pack(items: Sequence[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack("<II", agent, len(item)) + item for agent, item in items)


def unpack(data: bytes) -> list[tuple[int, bytes]]:
    items, at = [], 0
    while at < len(data):
        agent, length = struct.unpack_from("<II", data, at)
        items.append((agent, data[at + 8 : at + 8 + length]))
        at += 8 + length
    return items


@dataclass(frozen=True)
class Loss:
    agent: int  # or the number of agents, for rdmarun
    why: str  # a sentence about it


class AgentLost(ConnectionError):
    """An agent is lost before there is a job that could go on without it."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss.why)
        self.agent = loss.agent


class HubsGathering:
    """Complete once every agent that lives has given its part."""

    must_be_tested = False

    def __init__(self, hub: "Hub", number: int) -> None:
        self._hub = hub
        self._number = number

    def test(self) -> bytes | None:
        whole = self._hub.whole(self._number)
        return None if whole is None else b"".join(whole)

    def wait(self) -> bytes:
        return b"".join(self._hub.wait_for_whole(self._number))


class Hub:
    rank = 0

    def __init__(self, socks: Sequence[socket.socket], key: Key, size: int) -> None:
        """socks: listen where the other agents come to."""
        self.size = size
        self._wires = Wires()
        self._listener = Listener(socks, key, self._wires.selector, self._admit)
        self._links: dict[int, Link] = {}  # to the other agents
        self._rdmarun: Link | None = None
        self._losses: list[Loss] = []
        self._lost: set[int] = set()
        self._returned: dict[int, Link] = {}  # in the place of lost ones, and not welcomed yet
        self._records: list[bytes | None] = [None] * size
        self._changed: set[int] = set()
        self._tables: deque[list[bytes]] = deque()
        self._mail: list[tuple[int, bytes]] = []
        self._begun = 0  # gatherings
        self._parts: dict[int, dict[int, bytes]] = {}

    def wait_for_all(self) -> None:
        """Until all agents and rdmarun have come. That ends this one if it takes too long."""
        self._wait(lambda: len(self._links) == self.size - 1 and self._rdmarun is not None)

    def admit_no_more(self) -> None:
        """All are here, and who is lost does not come back."""
        self._listener.close()

    def leave(self) -> None:
        """The job is over as it should be."""
        if self._rdmarun is not None:
            self._rdmarun.send(Kind.OVER)

    def give_turn(self, agent: int, port: str) -> None:
        self._links[agent].send(Kind.TURN, port.encode())

    def begin_gathering(self, mine: bytes, _: Sequence[int]) -> Gathering:
        return HubsGathering(self, self._begin(mine))

    def from_first(self, mine: bytes) -> bytes:
        self._send_all(Kind.WHOLE, _U32.pack(self._begun) + pack([(0, mine)]))
        self._begun += 1
        return mine

    def from_all(self, mine: bytes) -> list[bytes]:
        return self.wait_for_whole(self._begin(mine))

    def whole(self, number: int) -> list[bytes] | None:
        """What all gave to a gathering, if it is complete; it is forgotten then."""
        parts = self._parts[number]
        if not all(agent in parts for agent in (0, *self._links)):
            return None
        del self._parts[number]
        self._send_all(Kind.WHOLE, _U32.pack(number) + pack(sorted(parts.items())))
        return [parts.get(agent, b"") for agent in range(self.size)]

    def wait_for_whole(self, number: int) -> list[bytes]:
        while (whole := self.whole(number)) is None:
            self._wires.poll(self._timeout_s())
        return whole

    def put(self, record: bytes) -> None:
        self.put_for(0, record)

    def put_for(self, agent: int, record: bytes) -> None:
        self._records[agent] = record
        self._changed.add(agent)

    def next_table(self) -> list[bytes] | None:
        self._publish()
        return self._tables.popleft() if self._tables else None

    @property
    def others(self) -> list[int]:
        return list(self._links)

    def send_mail(self, agent: int, text: bytes) -> None:
        if agent in self._links:
            self._links[agent].send(Kind.MAIL, text)

    def take_mail(self) -> list[tuple[int, bytes]]:
        mail, self._mail = self._mail, []
        return mail

    def losses(self) -> list[Loss]:
        """Who was lost since the last call."""
        losses, self._losses = self._losses, []
        return losses

    def expect_all(self) -> None:
        """Hears what there is. AgentLost if one of them is."""
        self.poll()
        for loss in self._losses:
            if loss.agent < self.size:
                raise AgentLost(loss)

    def ask_for_start(self, agent: int) -> None:
        """Has rdmarun start the agent of a lost host again, until it is back."""
        if self._rdmarun is not None:
            self._rdmarun.send(Kind.START, _U32.pack(agent))

    def welcome(self, text: bytes) -> None:
        """Lets those in who are back. Call it when no table waits and no gathering is on."""
        for agent, link in self._returned.items():
            self._lost.discard(agent)
            self._links[agent] = link
            said = [(agent, text), *enumerate(record or b"" for record in self._records)]
            link.send(Kind.WELCOME, _U32.pack(self._begun) + pack(said))
            if self._rdmarun is not None:
                self._rdmarun.send(Kind.BACK, _U32.pack(agent))
        self._returned.clear()

    @property
    def is_short(self) -> bool:
        return bool(self._lost)

    def is_lost(self, agent: int) -> bool:
        return agent in self._lost

    @property
    def returned(self) -> list[int]:
        return list(self._returned)

    def fileno(self) -> int:
        return self._wires.selector.fileno()

    @property
    def deadline(self) -> float | None:
        both = self._wires.deadline, self._listener.deadline
        return min((at for at in both if at is not None), default=None)

    def poll(self) -> None:
        self._wires.poll()
        self._listener.poll()

    def _admit(self, seat: int, link: Link) -> bool:
        hear, lose = partial(self._hear, seat), partial(self._lose, seat)
        if seat == self.size and self._rdmarun is None:
            self._rdmarun = link
            self._wires.add(link, hear, lose, may_be_silent=True)  # stopped by Ctrl-Z, say
            return True
        if not 0 < seat < self.size or seat in self._links or seat in self._returned:
            return False
        (self._returned if seat in self._lost else self._links)[seat] = link
        self._wires.add(link, hear, lose)
        return True

    def _hear(self, agent: int, kind: Kind, body: bytes) -> None:
        if kind is Kind.RECORD:
            self.put_for(agent, body)
        elif kind is Kind.MAIL:
            self._mail.append((agent, body))
        elif kind is Kind.PART:
            (number,) = _U32.unpack_from(body)
            self._parts.setdefault(number, {})[agent] = body[_U32.size :]

    def _lose(self, agent: int, why: str) -> None:
        if self._returned.pop(agent, None) is not None:
            return  # it is lost already
        self._links.pop(agent, None)
        self._lost.add(agent)
        self._losses.append(Loss(agent, why))

    def _publish(self) -> None:
        if self._changed and all(record is not None for record in self._records):
            table = [record or b"" for record in self._records]
            changed = [(agent, table[agent]) for agent in sorted(self._changed)]
            self._changed.clear()
            self._tables.append(table)
            self._send_all(Kind.TABLE, pack(changed))

    def _begin(self, mine: bytes) -> int:
        number, self._begun = self._begun, self._begun + 1
        self._parts.setdefault(number, {})[0] = mine
        return number

    def _send_all(self, kind: Kind, body: bytes) -> None:
        for link in self._links.values():
            link.send(kind, body)

    def _wait(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._wires.poll(self._timeout_s())
            self._listener.poll()

    def _timeout_s(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
