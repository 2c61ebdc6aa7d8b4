"""Drops: the log of tables that are no more, in the job's Store. Each server reads all of it, so no
table comes back with one that was away or is started again; then it looks for new words alone.

Floor: rdmacoll/ps/freeing. Thread: any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..._words import Words

LOG = "dropped"


class Drops:
    def __init__(self, words: Words) -> None:
        self._words = words
        self._known = 0  # so many there are at least

    def add(self, tables: Iterable[int], known: int = 0) -> int:
        """Servers free them soon. known: so many drops there are at least. Returns what
        dropped_by() of a server reaches once it has."""
        known = max(known, self._known)
        self._known = self._words.append(LOG, known, json.dumps(sorted(tables)))
        return self._known

    def after(self, known: int) -> tuple[list[int], int]:
        """The tables of what was added behind so many drops, and how many there are now."""
        tables: list[int] = []
        while (word := self._words.hear(f"{LOG}/{known}")) is not None:
            tables += json.loads(word)
            known += 1
        self._known = max(known, self._known)
        return tables, known

    def say_dropped(self, server: int, drops: int) -> None:
        self._words.say(f"dropped_by/{server}", str(drops))

    def dropped_by(self, server: int) -> int:
        """So many drops the server has heard of, and freed their tables."""
        return int(self._words.hear(f"dropped_by/{server}") or 0)
