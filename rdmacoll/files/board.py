"""FileBoard: what the job's Store has for files: the names in each folder, and which numbers are
taken.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ps.board import Board
from ..ps.worker import Worker

GONE = "gone"  # in the place of a folder's names


class FileBoard:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def _board(self) -> Board:
        """Raises RuntimeError in a forked child."""
        self._worker.check_process()
        return self._worker.board

    def names_in(self, folder: int) -> str | None:
        """None: none were ever there; GONE: it was removed."""
        return self._board.words.hear(f"folder/{folder}")

    def change_names(self, folder: int, known: str | None, wanted: str) -> str:
        """Says what is in it, unless it is not as known any more; the newest word."""
        key = f"folder/{folder}"
        if known is None:
            return self._board.words.say_first(key, wanted)
        return self._board.words.change(key, known, wanted)

    def next_folder(self) -> int:
        return self._board.next_number("folders")

    def next_table(self) -> int:
        return self._board.next_number("tables")

    def drop_tables(self, tables: Iterable[int]) -> None:
        """Servers free them within a second."""
        numbers = list(tables)
        if numbers:
            self._board.drops.add(numbers)
