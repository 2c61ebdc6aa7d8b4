"""The links of one process: watched together, kept alive by beats, and given up when silent.

Floor: launcher/star. Thread: the agent's or rdmarun's; the beats are sent by another.
"""

import selectors
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from rdmacoll.launcher.base.limits import start_thread

from .link import BEAT_S, SILENCE_S, Kind, Link, LinkEnded

Hear = Callable[[Kind, bytes], None]
SILENT = f"its agent has said nothing for {SILENCE_S:g} s, so it is down or cut off"


class Wires:
    def __init__(self) -> None:
        self.selector = selectors.EpollSelector()
        self._links: dict[Link, Callable[[str], None]] = {}
        self._may_be_silent: set[Link] = set()
        start_thread(self._beat)

    def add(
        self, link: Link, hear: Hear, on_end: Callable[[str], None], may_be_silent: bool = False
    ) -> None:
        """on_end: is told why, once; the link is closed then."""
        self._links[link] = on_end
        if may_be_silent:
            self._may_be_silent.add(link)
        self.selector.register(link, selectors.EVENT_READ, partial(self._go_on, link, hear))

    def drop(self, link: Link) -> None:
        if self._links.pop(link, None) is not None:
            self._may_be_silent.discard(link)
            self.selector.unregister(link)
            link.close()

    @property
    def deadline(self) -> float | None:
        return min((link.silent_at for link in self._watched), default=None)

    def poll(self, timeout_s: float | None = 0.0) -> None:
        """Hears what is there, or waits for something."""
        for key, _ in self.selector.select(timeout_s):
            key.data()
        # Only now: what they said while this process was busy has been read.
        for link in [link for link in self._watched if link.silent_at <= time.monotonic()]:
            self._end(link, SILENT)
        for link in self._links:
            events = selectors.EVENT_READ
            if link.wants_to_write:
                events |= selectors.EVENT_WRITE
            if (key := self.selector.get_key(link)).events != events:
                self.selector.modify(link, events, key.data)

    @property
    def _watched(self) -> set[Link]:
        return self._links.keys() - self._may_be_silent

    def _go_on(self, link: Link, hear: Hear) -> None:
        link.flush()
        try:
            for kind, body in link.receive():
                if kind is not Kind.BEAT:
                    hear(kind, body)
        except LinkEnded as ended:
            self._end(link, str(ended))

    def _end(self, link: Link, why: str) -> None:
        on_end = self._links.get(link)
        self.drop(link)
        if on_end is not None:
            on_end(why)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            with suppress(RuntimeError):  # the links change meanwhile; the next beat comes soon
                for link in self._links:
                    link.beat()
