"""FileBoard: what the job's Store has for files: the names in each folder, which numbers are taken,
and what processes hold.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..ps.board import Board
from ..ps.freeing.held import (
    TIMES_NAMED_AGAIN,
    folder_word,
    holders,
    named_again,
    thrown_away,
    word_of,
)
from ..ps.worker import Worker

# Tables that have names are numbered from 1, and who looks for these goes through their numbers.
FIRST_TABLE = 1 << 31


class FileBoard:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def _board(self) -> Board:
        self.check_process()
        return self._worker.board

    def check_process(self) -> None:
        """Raises RuntimeError in a forked child, as all of these do."""
        self._worker.check_process()

    # --- folders ------------------------------------------------------------------------------

    def names_in(self, folder: int) -> str | None:
        """None: none were ever there; GONE: it was removed."""
        return self._board.words.hear(folder_word(folder))

    def change_names(self, folder: int, known: str | None, wanted: str) -> str:
        """Says what is in it, unless it is not as known any more; the newest word."""
        key = folder_word(folder)
        if known is None:
            return self._board.words.say_first(key, wanted)
        return self._board.words.change(key, known, wanted)

    def next_folder(self) -> int:
        return self._board.next_number("folders")

    # --- tables -------------------------------------------------------------------------------

    def next_tables(self, count: int) -> list[int]:
        """Numbers that nobody has, one after the other."""
        last = FIRST_TABLE + self._board.next_number("file tables", count)
        return list(range(last - count + 1, last + 1))

    def throw_away(self, tables: Iterable[int]) -> None:
        """No folder names them any more. Servers free them once nobody holds them."""
        numbers = list(tables)
        if numbers:
            thrown_away(self._board.words).change(add=numbers)

    @contextmanager
    def naming_again(self, tables: Iterable[int]) -> Iterator[None]:
        """A folder is to name them, that did so before. This process holds them, and goes on until
        this has ended (ps/freeing/held.py)."""
        named_again(self._board.words).change(add=tables)
        yield
        self._board.next_number(TIMES_NAMED_AGAIN)

    def new_holder(self, word: str) -> int:
        """The number of one that says this."""
        words, holder = self._board.words, self._board.next_number("holders")
        words.say(word_of(holder), word)
        holders(words).change(add=[holder])
        return holder

    def change_holder(self, holder: int, known: str, wanted: str) -> bool:
        """False: what is known is not what it has said last, as it was taken for dead."""
        return self._board.words.change(word_of(holder), known, wanted) == wanted
