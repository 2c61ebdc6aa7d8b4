"""Processes of a job that have files, in one process: the Store, who holds what, and who frees it.

Floor: tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rdmacoll._words import Words
from rdmacoll.files.board import FileBoard
from rdmacoll.files.entry import File, Part
from rdmacoll.files.folders import Folders
from rdmacoll.files.holder import Hold, Holder
from rdmacoll.files.holds import Holds
from rdmacoll.files.tree import Tree
from rdmacoll.ps.freeing.collector import MOST_SILENT, Collector
from rdmacoll.ps.freeing.drops import Drops

FILE = ("file",)


class Store:
    """In the place of the job's."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self._meanwhile: list[tuple[str, int, Callable[[], Any]]] = []

    def meanwhile(self, key: str, does: Callable[[], Any], after: int = 0) -> None:
        """What somebody does before the next word of this key is said or heard, or a later one."""
        self._meanwhile.append((key, after, does))

    def forget_meanwhile(self) -> None:
        self._meanwhile.clear()

    def before(self, key: str) -> None:
        waiting, self._meanwhile = self._meanwhile, []
        for of, after, does in waiting:
            if key == of and after == 0:
                does()
            else:
                self._meanwhile.append((of, after - (key == of), does))

    def compare_set(self, key: str, known: str, wanted: str) -> str:
        self.before(key)
        if key not in self.values and known:
            return known
        if self.values.get(key, "") == known:
            self.values[key] = wanted
        return self.values[key]

    def set(self, key: str, value: str) -> None:
        self.before(key)
        self.values[key] = value

    def delete_key(self, key: str) -> bool:
        return self.values.pop(key, None) is not None


class Board:
    """What of a job's Board is needed for files."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._numbers = store.numbers
        self.words = Words(store, "start", lambda text: hashlib.sha256(text.encode()).digest())
        self.drops = Drops(self.words)

    def next_number(self, of: str, count: int = 1) -> int:
        self._store.before(of)
        self._numbers[of] = self._numbers.get(of, 0) + count
        return int(self._numbers[of])

    def count(self, of: str) -> int:
        self._store.before(of)
        return int(self._numbers.get(of, 0))


class Process:
    """One that has files. It shows that it lives only where it is told to."""

    def __init__(self, board: Board) -> None:
        worker: Any = SimpleNamespace(board=board, check_process=lambda: None)
        self.board = FileBoard(worker)
        self.folders = Folders(self.board)
        self.tree = Tree(self.folders)
        self.holder = Holder(self.board)
        self.holder.end()
        self.holds = Holds(self.board, self.folders, self.holder)

    def make(self) -> tuple[Part, ...]:
        (table,) = self.holder.make()
        return (Part(table, 10),)

    def open(self, *path: str) -> tuple[File, Hold]:
        return self.holds.open(self.tree.at(path))

    def put(self, *path: str) -> tuple[Part, ...]:
        made = self.make()
        self.name(made, *path)
        return made

    def change_within(self, opened: tuple[File, Hold], *path: str) -> tuple[Part, ...]:
        """A new version of what it has open: its parts, and one that is new. All is closed then."""
        before, base = opened
        made = self.make()
        file = File((*before.parts, *made), 0)
        tables = [part.table for part in made]
        self.holds.put(self.tree.at(path), file, tables, base).close()
        base.close()
        self.holder.beat()
        return file.parts

    def name(self, parts: tuple[Part, ...], *path: str, appends: bool = False) -> None:
        at, tables = self.tree.at(path), [part.table for part in parts]
        if appends:
            _, hold = self.holds.append(at, File(parts, 0), tables)
        else:
            hold = self.holds.put(at, File(parts, 0), tables, None)
        hold.close()
        self.holder.beat()

    def remove(self, *path: str) -> None:
        self.board.throw_away(self.tree.remove_file(path).tables)

    def free(self, parts: tuple[Part, ...]) -> None:
        """That nobody has named."""
        self.board.throw_away(part.table for part in parts)
        self.holder.forget(part.table for part in parts)


class Job:
    def __init__(self) -> None:
        self.store = Store()
        self.board = Board(self.store)
        self.ours, self.theirs = Process(self.board), Process(self.board)
        self.collector = self.another_collector()
        self.before = self.ours.put(*FILE)
        self.theirs.put("other")

    def another_collector(self) -> Collector:
        board = Board(self.store)
        return Collector(board.words, board.drops, board.count)

    def is_freed(self, parts: tuple[Part, ...]) -> bool:
        """After another look of the collector."""
        self.collector.look()
        return self.is_dropped(parts)

    def is_dropped(self, parts: tuple[Part, ...]) -> bool:
        return {part.table for part in parts} <= set(self.dropped())

    def dropped(self) -> list[int]:
        tables, _ = Drops(self.board.words).after(0)
        return list(tables)

    def bury(self, dead: Process) -> None:
        """All but it show that they live."""
        for _ in range(MOST_SILENT + 2):
            self.collector.look()
            for one in self.ours, self.theirs:
                if one is not dead:
                    one.holder.beat()

    def holders(self) -> list[str]:
        return [key for key in self.store.values if key.startswith("holder/")]
