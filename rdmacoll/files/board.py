"""FileBoard: what the job's Store has for files: the names in each folder, which numbers are taken,
what processes hold, and which tables the job has.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch.distributed as dist

from ..ps.board import Board, Table
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

    def check_process(self) -> None:
        """Raises RuntimeError in a forked child, as all of these do."""
        self._worker.check_process()

    @contextmanager
    def store(self) -> Iterator[Board]:
        """Raises OSError (EIO) where the Store does not answer, as all of these do."""
        self.check_process()
        try:
            yield self._worker.board
        except dist.DistError as error:
            reason = str(error).partition("\n")[0]
            about = self._worker.about_store()
            raise OSError(errno.EIO, f"the job's Store does not answer: {reason}{about}") from error

    # --- folders ------------------------------------------------------------------------------

    def names_in(self, folder: int) -> str | None:
        """None: none were ever there; GONE: it was removed."""
        with self.store() as board:
            return board.words.hear(folder_word(folder))

    def change_names(self, folder: int, known: str | None, wanted: str) -> str:
        """Says what is in it, unless it is not as known any more; the newest word."""
        key = folder_word(folder)
        with self.store() as board:
            if known is None:
                return board.words.say_first(key, wanted)
            return board.words.change(key, known, wanted)

    def next_folder(self) -> int:
        with self.store() as board:
            return board.next_number("folders")

    # --- tables of files ----------------------------------------------------------------------

    def next_tables(self, count: int) -> list[int]:
        """Numbers that nobody has, one after the other."""
        with self.store() as board:
            last = FIRST_TABLE + board.next_number("file tables", count)
        return list(range(last - count + 1, last + 1))

    def throw_away(self, tables: Iterable[int]) -> None:
        """No folder names them any more. Servers free them once nobody holds them."""
        numbers = list(tables)
        if numbers:
            with self.store() as board:
                thrown_away(board.words).change(add=numbers)

    @contextmanager
    def naming_again(self, tables: Iterable[int]) -> Iterator[None]:
        """A folder is to name them, that did so before. This process holds them, and goes on until
        this has ended (ps/freeing/held.py)."""
        with self.store() as board:
            named_again(board.words).change(add=tables)
            yield
            board.next_number(TIMES_NAMED_AGAIN)

    def new_holder(self, word: str) -> int:
        """The number of one that says this."""
        with self.store() as board:
            holder = board.next_number("holders")
            board.words.say(word_of(holder), word)
            holders(board.words).change(add=[holder])
        return holder

    def change_holder(self, holder: int, known: str, wanted: str) -> bool:
        """False: what is known is not what it has said last, as it was taken for dead."""
        with self.store() as board:
            return board.words.change(word_of(holder), known, wanted) == wanted

    # --- tables of the job --------------------------------------------------------------------

    def dense_tables(self) -> list[tuple[str, int, tuple[int, ...]]]:
        """The name of each, its number and its shape."""
        with self.store() as board:
            return [
                (name, number, tuple(shape))
                for number, (name, kind, _optimizer, shape) in board.about_tables()
                if kind == "dense"
            ]

    def find_table(self, name: str) -> Table | None:
        """None: there is no dense one of this name that has its first values."""
        with self.store() as board:
            table = board.find_table(name)
            return table if table is not None and board.is_ready(table.number) else None
