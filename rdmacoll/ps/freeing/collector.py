"""Collector: frees the tables of files that nobody needs. One server does it; where two do, as one
takes the other for lost, both come to the same: what no folder names and nobody holds stays so.

Floor: rdmacoll/ps/freeing. Thread: one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..._words import Words
from .drops import Drops
from .held import (
    TIMES_NAMED_AGAIN,
    Held,
    folder_word,
    holders,
    named_again,
    tables_named,
    thrown_away,
    word_of,
)

# Of this one's own beats: if the Store has stood still, holders could not show that they live.
MOST_SILENT = 50


class Collector:
    def __init__(self, words: Words, drops: Drops, count: Callable[[str], int]) -> None:
        """count: as Board.count()."""
        self._words = words
        self._drops = drops
        self._count = count
        self._thrown = thrown_away(words)
        self._again = named_again(words)
        self._holders = holders(words)
        self._silent: dict[int, tuple[str, int]] = {}  # by holder: its word, in how many beats

    def look(self, is_beat: bool = True) -> bool:
        """Whether anything was thrown away that was there still. is_beat: holders that live have
        spoken since the last look that was one."""
        times = self._count(TIMES_NAMED_AGAIN)
        # What is thrown away is read before the holders' words: who has come to hold a table later
        # finds that no folder names it.
        thrown = self._thrown.all()
        doubtful = thrown & self._again.all() if thrown else set()
        thrown -= self._named_still(doubtful)
        held: set[int] = set()
        for holder in sorted(self._holders.all()):
            held |= self._held_by(holder, is_beat)
        free = thrown - held
        # Of those some may be named since, by who held them before its word was read.
        if free and self._count(TIMES_NAMED_AGAIN) == times:
            self._drops.add(free)
            self._thrown.change(remove=free)
            self._again.change(remove=free & doubtful)
        return bool(thrown)

    def _named_still(self, doubtful: set[int]) -> set[int]:
        """Of these, those that folders name, or may name. Those that do are thrown away no more."""
        named = self._named() if doubtful else set()
        if named is None:
            return doubtful
        still = doubtful & named
        if still:
            self._thrown.change(remove=still)
            # Who has taken the name away since has found it thrown away already.
            named = self._named()
            self._thrown.change(add=still if named is None else still - named)
        return still

    def forget(self) -> None:
        """Another server has its turn: nothing is known of how long holders are silent."""
        self._silent.clear()

    def _held_by(self, holder: int, is_beat: bool) -> frozenset[int]:
        key = word_of(holder)
        word = self._words.hear(key)
        if word is None:  # another collector has buried it, or was about to
            self._strike(holder)
            return frozenset()
        held = Held.from_word(word)
        if not held.is_gone:
            before, silent = self._silent.get(holder, ("", 0))
            silent = silent + is_beat if word == before else 0
            self._silent[holder] = (word, silent)
            # It may show that it lives until the word itself says that it is gone.
            gone = replace(held, is_gone=True).to_word()
            if silent < MOST_SILENT or self._words.change(key, word, gone) != gone:
                return held.open | held.loose
        self._bury(holder, held)
        return frozenset()

    def _bury(self, holder: int, held: Held) -> None:
        """What it was making is thrown away, but for what folders name."""
        if held.loose:
            named = self._named()
            if named is None:
                return  # the next look tries it again
            self._thrown.change(add=held.loose - named)
        self._words.forget(word_of(holder))
        self._strike(holder)

    def _strike(self, holder: int) -> None:
        self._holders.change(remove=[holder])
        self._silent.pop(holder, None)

    def _named(self) -> set[int] | None:
        """By all folders at one moment. None: they have changed meanwhile, and what was moved from
        one to another may have been in neither."""
        before, after = self._folders(), self._folders()
        return set().union(*map(tables_named, after)) if before == after else None

    def _folders(self) -> list[str | None]:
        count = self._count("folders")
        return [self._words.hear(folder_word(folder)) for folder in range(count + 1)]
