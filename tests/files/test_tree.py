"""Tree, while another process changes the same folders between any two of its looks.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rdmacoll.files.entry import File, Part
from rdmacoll.files.folders import At, Folders
from rdmacoll.files.tree import Path, Tree
from rdmacoll.ps.freeing.held import GONE

Parts = tuple[Part, ...]
A, B = (Part(1, 10),), (Part(2, 20),)
MOVED = ("from", "moved"), ("to", "empty")


class Board:
    """In the place of the job's Store. before: what another process does before a change."""

    def __init__(self) -> None:
        self.words: dict[int, str] = {}
        self.before: list[Callable[[], Any]] = []
        self.folders = 0

    def names_in(self, folder: int) -> str | None:
        return self.words.get(folder)

    def change_names(self, folder: int, known: str | None, wanted: str) -> str:
        if self.before:
            self.before.pop(0)()
        if self.words.get(folder) == known:
            self.words[folder] = wanted
        return self.words[folder]

    def next_folder(self) -> int:
        self.folders += 1
        return self.folders


class Process(Tree):
    def __init__(self, board: Any) -> None:
        self.folders = Folders(board)
        super().__init__(self.folders)

    def put(self, path: Path, parts: Parts, *, only_new: bool = False) -> Parts:
        """What is replaced."""
        replaced = self.folders.put(self.at(path), File(parts, 0), only_new=only_new)
        return () if replaced is None else replaced.parts

    def append(self, path: Path, parts: Parts) -> Parts:
        """What is there then."""
        _, after = self.folders.append(self.at(path), File(parts, 0))
        return after.parts


class Two:
    """Two processes' trees of one job."""

    def __init__(self) -> None:
        self.board = Board()
        shared: Any = self.board
        self.ours, self.theirs = Process(shared), Process(shared)
        self.ours.make_folder(("from",))
        self.ours.make_folder(("to",))
        self.ours.put(("from", "a"), A)

    def meanwhile(self, *does: Callable[[], Any]) -> None:
        """What the other one does before our next changes."""
        self.board.before = list(does)

    def parts(self, *path: str) -> tuple[Part, ...]:
        entry = self.ours.find(path)
        assert isinstance(entry, File)
        return entry.parts


@pytest.fixture
def two() -> Two:
    return Two()


def nothing() -> None:
    pass


def test_both_names_are_there(two: Two) -> None:
    two.meanwhile(lambda: two.theirs.put(("from", "b"), B))
    assert two.ours.put(("from", "c"), B) == ()
    assert sorted(two.ours.list(("from",))) == ["a", "b", "c"]


def test_both_appends_are_there(two: Two) -> None:
    two.meanwhile(lambda: two.theirs.append(("from", "a"), B))
    assert two.ours.append(("from", "a"), B) == two.parts("from", "a") == A + B + B


def test_what_was_replaced_is_what_was_there_then(two: Two) -> None:
    two.meanwhile(lambda: two.theirs.put(("from", "a"), B))
    assert two.ours.put(("from", "a"), A) == B


def test_one_of_two_makes_it(two: Two) -> None:
    two.meanwhile(lambda: two.theirs.put(("from", "new"), A, only_new=True))
    with pytest.raises(FileExistsError):
        two.ours.put(("from", "new"), B, only_new=True)
    assert two.parts("from", "new") == A


def test_a_move_takes_no_other_version_away(two: Two) -> None:
    two.ours.put(("to", "a"), B)
    written = (Part(3, 30),)
    two.meanwhile(nothing, lambda: two.theirs.put(("from", "a"), written))
    with pytest.raises(OSError, match="busy"):
        two.ours.move(("from", "a"), ("to", "a"))
    assert two.parts("from", "a") == written and two.parts("to", "a") == B


def test_a_move_of_what_was_removed(two: Two) -> None:
    two.meanwhile(nothing, lambda: two.theirs.remove_file(("from", "a")))
    with pytest.raises(OSError, match="busy"):
        two.ours.move(("from", "a"), ("to", "a"))
    assert two.ours.list(("from",)) == two.ours.list(("to",)) == {}


def test_moves(two: Two) -> None:
    two.ours.put(("to", "b"), B)
    replaced = two.ours.move(("from", "a"), ("to", "b"))
    assert replaced is not None and replaced.parts == B
    assert two.ours.list(("from",)) == {} and two.parts("to", "b") == A
    assert two.ours.move(("to", "b"), ("to", "c")) is None
    assert two.ours.move(("to",), ("from", "to")) is None
    assert two.parts("from", "to", "c") == A


def test_nothing_is_put_into_a_folder_that_goes(two: Two) -> None:
    two.meanwhile(lambda: two.theirs.put(("to", "a"), B))
    with pytest.raises(OSError, match="not empty"):
        two.ours.remove_folder(("to",))
    two.ours.remove_file(("to", "a"))
    two.meanwhile(lambda: two.theirs.remove_folder(("to",)))
    with pytest.raises(FileNotFoundError):
        two.ours.put(("to", "a"), B)
    assert GONE in two.board.words.values() and list(two.ours.list(())) == ["from"]


def test_a_folder_takes_the_place_of_an_empty_one(two: Two) -> None:
    """As rename() has it; what the other one puts beside it has our change tried again."""
    folders = two.ours.folders
    two.ours.make_folder(("from", "moved"))
    two.ours.make_folder(("to", "empty"))
    old, new = (At(two.ours.folder_of((one, "x")), name, name) for one, name in MOVED)
    two.meanwhile(nothing, nothing, lambda: two.theirs.put(("to", "beside"), B))
    assert folders.move(old, new, over_empty=True) is None
    assert two.ours.list(("to", "empty")) == {}
    two.ours.put(("to", "empty", "file"), A)
    assert sorted(two.ours.list(("to",))) == ["beside", "empty"]
    assert sorted(two.ours.list(("from",))) == ["a"]
    with pytest.raises(OSError, match="not empty"):
        folders.move(At(0, "from", "from"), new, over_empty=True)


def test_a_folder_is_removed_while_its_time_is_set(two: Two) -> None:
    theirs, to = two.theirs.folders, two.ours.folder_of(("to", "x"))
    two.meanwhile(lambda: theirs.set_changed_ns(to, 5))
    two.ours.remove_folder(("to",))
    assert list(two.ours.list(())) == ["from"] and theirs.changed_ns(to) == 0
    with pytest.raises(FileNotFoundError):
        theirs.set_changed_ns(to, 7)


def test_a_time_that_is_set_stays_until_a_name_comes_or_goes(two: Two) -> None:
    folders, at = two.ours.folders, two.ours.folder_of(("from", "x"))
    two.meanwhile(lambda: two.theirs.put(("from", "b"), B))
    folders.set_changed_ns(at, 5)
    assert sorted(two.ours.list(("from",))) == ["a", "b"]
    two.ours.put(("from", "a"), B)
    assert folders.changed_ns(at) == 5
    two.ours.remove_file(("from", "b"))
    assert folders.changed_ns(at) > 5
