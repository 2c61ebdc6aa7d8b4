"""rdmarun's own link to agent 0: it learns whether the job ended as it should, or agent 0 is lost,
and which agents to start again.

What mpiexec passes on does not tell: it notices neither an agent that is stopped nor a host that is
cut off. Floor: launcher/command, in rdmarun. Thread: the main one.
"""

import selectors
import time
from collections.abc import Callable

from rdmacoll.launcher.keys.key import Key
from rdmacoll.launcher.star.greeting import dial
from rdmacoll.launcher.star.link import Kind
from rdmacoll.launcher.star.place import Place
from rdmacoll.launcher.star.wires import Wires

DIAL_S = 10.0


class HubWatch:
    def __init__(
        self,
        key: Key,
        place: Place,
        seat: int,
        selector: selectors.BaseSelector,
        on_lost: Callable[[str], None],
        start: Callable[[int], None],
        on_back: Callable[[int], None],
    ) -> None:
        """OSError if agent 0 cannot be reached. start: starts the agent of a lost host again.
        on_back: hears that it is in the star.
        """
        self._on_lost = on_lost
        self._start = start
        self._on_back = on_back
        self._is_over = False
        link = dial(key, seat, place, time.monotonic() + DIAL_S)
        self._wires = Wires()
        self._wires.add(link, self._hear, self._lose)
        selector.register(self._wires.selector, selectors.EVENT_READ, self.poll)

    @property
    def deadline(self) -> float | None:
        return self._wires.deadline

    def poll(self) -> None:
        self._wires.poll()

    def _hear(self, kind: Kind, body: bytes) -> None:
        if kind is Kind.OVER:
            self._is_over = True
        elif kind is Kind.START:
            self._start(int.from_bytes(body, "little"))
        elif kind is Kind.BACK:
            self._on_back(int.from_bytes(body, "little"))

    def _lose(self, why: str) -> None:
        if not self._is_over:
            self._on_lost(why)
