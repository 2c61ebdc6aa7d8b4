"""Which tables of files somebody still needs: words that processes with files and the servers'
collector (collector.py) have in common.

Who makes a table is its holder: its own word in the Store has the table before there is one. Then a
folder's word names it. Who opens the file has it in a word, too, and looks then whether the folder
still names it. Who takes the name away throws the table away: it is freed once no holder has it.

Who changes a file within begins with tables of the version that it has open. If another process
replaces that version meanwhile, a table that was thrown away is named again. Who does that says so
before, counts it up behind it, and has the table open all the time. Such a table is freed only once
no folder names it.

Floor: rdmacoll/ps/freeing. Thread: any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from ..._words import Words

GONE = "gone"  # in the place of a folder's names
TIMES_NAMED_AGAIN = "times named again"  # the count, as Board.count() has it


@dataclass(frozen=True)
class Held:
    """A holder's word."""

    beats: int  # one more with each of its words: so it shows that it lives
    open: frozenset[int]  # tables of files that it has open
    loose: frozenset[int]  # tables that it has made, and that no folder may name yet
    is_gone: bool = False  # it was taken for dead

    def to_word(self) -> str:
        return json.dumps([self.beats, sorted(self.open), sorted(self.loose), self.is_gone])

    @staticmethod
    def from_word(word: str) -> Held:
        beats, opened, loose, is_gone = json.loads(word)
        return Held(beats, frozenset(opened), frozenset(loose), is_gone)


class Numbers:
    """A set of numbers, one word, which any process of the job changes."""

    def __init__(self, words: Words, key: str) -> None:
        self._words = words
        self._key = key

    def all(self) -> set[int]:
        return _numbers(self._words.hear(self._key))

    def change(self, add: Iterable[int] = (), remove: Iterable[int] = ()) -> None:
        known, add, remove = self._words.hear(self._key), set(add), set(remove)
        while True:
            before = _numbers(known)
            after = (before - remove) | add
            if after == before:
                return
            wanted = json.dumps(sorted(after))
            if known is None:
                said = self._words.say_first(self._key, wanted)
            else:
                said = self._words.change(self._key, known, wanted)
            if said == wanted:
                return
            known = said


def _numbers(word: str | None) -> set[int]:
    return set() if word is None else set(json.loads(word))


def thrown_away(words: Words) -> Numbers:
    """Tables that no folder names any more."""
    return Numbers(words, "thrown")


def holders(words: Words) -> Numbers:
    """Those whose words count."""
    return Numbers(words, "holding")


def named_again(words: Words) -> Numbers:
    """Tables that a folder has named, or may do so, after they were thrown away."""
    return Numbers(words, "named again")


def word_of(holder: int) -> str:
    return f"holder/{holder}"


def folder_word(folder: int) -> str:
    return f"folder/{folder}"


def tables_named(word: str | None) -> set[int]:
    """Of a folder's word: its second is a list of all tables that the folder names."""
    return set() if word in (None, GONE) else set(json.loads(word)[1])
