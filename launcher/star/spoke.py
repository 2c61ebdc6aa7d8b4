"""A spoke: the side of the star that every agent but agent 0 has.

Floor: launcher/star. Thread: the agent's.
"""

import struct
import time
from collections import deque
from collections.abc import Callable, Sequence

from rdmacoll.launcher.base.comm import Gathering

from .hub import unpack
from .link import Kind, Link
from .wires import Wires

_U32 = struct.Struct("<I")


class HubLost(ConnectionError):
    """Agent 0 is lost, and with it the job."""


class SpokesGathering:
    must_be_tested = False

    def __init__(self, spoke: "Spoke", number: int) -> None:
        self._spoke = spoke
        self._number = number

    def test(self) -> bytes | None:
        whole = self._spoke.whole(self._number)
        return None if whole is None else b"".join(whole)

    def wait(self) -> bytes:
        return b"".join(self._spoke.wait_for_whole(self._number))


class Spoke:
    def __init__(self, link: Link, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self._wires = Wires()
        self._link = link
        self._turn = ""
        self._welcome: bytes | None = None
        self._records = [b""] * size
        self._tables: deque[list[bytes]] = deque()
        self.others = [0]
        self._mail: list[tuple[int, bytes]] = []
        self._begun = 0  # gatherings
        self._wholes: dict[int, list[bytes]] = {}
        self._wires.add(link, self._hear, self._lose)

    def wait_for_turn(self) -> str:
        self._wait(lambda: bool(self._turn))
        return self._turn

    def leave(self) -> None:
        pass

    def wait_for_welcome(self) -> bytes:
        """For who comes in the place of a lost one: what the hub says of the job."""
        self._wait(lambda: self._welcome is not None)
        assert self._welcome is not None
        return self._welcome

    def begin_gathering(self, mine: bytes, _: Sequence[int]) -> Gathering:
        return SpokesGathering(self, self._begin(mine))

    def from_first(self, _: bytes) -> bytes:
        number, self._begun = self._begun, self._begun + 1
        return self.wait_for_whole(number)[0]

    def from_all(self, mine: bytes) -> list[bytes]:
        return self.wait_for_whole(self._begin(mine))

    def whole(self, number: int) -> list[bytes] | None:
        """What all gave to a gathering, if it is complete; it is forgotten then."""
        return self._wholes.pop(number, None)

    def wait_for_whole(self, number: int) -> list[bytes]:
        self._wait(lambda: number in self._wholes)
        return self._wholes.pop(number)

    def put(self, record: bytes) -> None:
        self._link.send(Kind.RECORD, record)

    def next_table(self) -> list[bytes] | None:
        return self._tables.popleft() if self._tables else None

    def send_mail(self, _: int, text: bytes) -> None:
        self._link.send(Kind.MAIL, text)

    def take_mail(self) -> list[tuple[int, bytes]]:
        mail, self._mail = self._mail, []
        return mail

    def fileno(self) -> int:
        return self._wires.selector.fileno()

    @property
    def deadline(self) -> float | None:
        return self._wires.deadline

    def poll(self) -> None:
        self._wires.poll()

    def expect_all(self) -> None:
        """Hears what there is. HubLost if agent 0 is."""
        self.poll()

    def _hear(self, kind: Kind, body: bytes) -> None:
        if kind is Kind.TABLE:
            for agent, record in unpack(body):
                self._records[agent] = record
            self._tables.append(list(self._records))
        elif kind is Kind.WHOLE:
            (number,) = _U32.unpack_from(body)
            whole = [b""] * self.size
            for agent, part in unpack(body[_U32.size :]):
                whole[agent] = part
            self._wholes[number] = whole
        elif kind is Kind.WELCOME:
            (self._begun,) = _U32.unpack_from(body)
            (_, self._welcome), *records = unpack(body[_U32.size :])
            self._records = [record for _, record in records]
        elif kind is Kind.MAIL:
            self._mail.append((0, body))
        elif kind is Kind.TURN:
            self._turn = body.decode()

    def _lose(self, why: str) -> None:
        raise HubLost(f"agent 0 is lost: {why}")

    def _begin(self, mine: bytes) -> int:
        number, self._begun = self._begun, self._begun + 1
        self._link.send(Kind.PART, _U32.pack(number) + mine)
        return number

    def _wait(self, condition: Callable[[], bool]) -> None:
        while not condition():
            at = self._wires.deadline
            self._wires.poll(None if at is None else max(0.0, at - time.monotonic()))
