"""Random operations in a folder of the mount and in one of another file system, which must be told
the same: `random_operations.py MOUNTED OTHER SEED COUNT`. It shows the last ones before the first
difference.

What a program writes is seen by others when it is closed. So a name that is open for writing is
looked at only by what has it open. Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NAMES = ["a", "b", "c", "a name", "\udcff\udcfe", "ü" * 100, "x" * 255]
SHOWN = 40
MIB = 1 << 20


@dataclass
class Open:
    name: str
    fds: tuple[int, int]
    writes: bool


class Operations:
    def __init__(self, roots: tuple[str, str], seed: int) -> None:
        self._roots = roots
        self._random = random.Random(seed)
        self._open: list[Open] = []
        self._last: deque[str] = deque(maxlen=SHOWN)
        # Small files, of a part, or of a few. After so many operations all are removed: there is no
        # room for all that would come.
        self._most, self._until_empty = self._random.choice(
            [(100, 1000), (10_000, 1000), (300_000, 500), (3 * MIB, 200), (40 * MIB, 40)]
        )

    def run(self, count: int) -> None:
        kinds: list[Callable[[], None]] = [
            *[self._of_open] * 20,
            *[self._open_one] * 3,
            *[self._close_one] * 2,
            *(self._remove, self._rename, self._make, self._list, self._look, self._truncate),
        ]
        for number in range(1, count + 1):
            self._random.choice(kinds)()
            if number % self._until_empty == 0 or number == count:
                self._compare_all_and_empty()

    def _compare_all_and_empty(self) -> None:
        while self._open:
            self._close_one()
        for path in self._paths():
            self._both(f"all of {path!r}", _at(_all_of, path))
        self._both("empty it", _empty)

    # --- the two sides ------------------------------------------------------------------------

    def _both(self, what: str, act: Callable[[Any], Any], on: tuple[Any, Any] | None = None) -> Any:
        said = [_said(act, side) for side in on or self._roots]
        self._last.append(f"{what}: {_short(said[0])}")
        if said[0] != said[1]:
            print(*self._last, sep="\n")
            sys.exit(f"difference: the other file system says {_short(said[1])}")
        return said[0]

    def _paths(self) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self._roots[1]):
            inside = os.path.relpath(folder, self._roots[1])
            found += [os.path.normpath(os.path.join(inside, one)) for one in folders + files]
        return sorted(found)

    def _name(self) -> str:
        folders = [one for one in self._paths() if os.path.isdir(os.path.join(self._roots[1], one))]
        folder = self._random.choice(["", "", *folders])
        return os.path.join(folder, self._random.choice(NAMES))

    def _is_written(self, name: str) -> bool:
        return any(one.writes and one.name == name for one in self._open)

    # --- what is open -------------------------------------------------------------------------

    def _open_one(self) -> None:
        name = self._name()
        if len(self._open) == 5 or self._is_written(name):
            return
        access = self._random.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR])
        flags = access
        for more in (os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND):
            if self._random.random() < 0.3:
                flags |= more
        writes = access != os.O_RDONLY
        # Another file system shows a reader what is written meanwhile.
        if any(one.name == name for one in self._open) and (writes or flags & os.O_TRUNC):
            return
        if not writes:
            flags &= ~os.O_TRUNC
        fds: list[int] = []

        def open_it(root: str) -> str:
            fds.append(os.open(os.path.join(root, name), flags, 0o640))
            return "open"

        self._both(f"open {name!r} {flags:o}", open_it)
        if fds:
            self._open.append(Open(name, (fds[0], fds[1]), writes))

    def _close_one(self) -> None:
        if self._open:
            one = self._open.pop(self._random.randrange(len(self._open)))
            self._both(f"close {one.name!r}", os.close, one.fds)

    def _of_open(self) -> None:
        if not self._open:
            return self._open_one()
        one = self._random.choice(self._open)
        at = self._random.randrange(self._most)
        count = self._random.choice([1, 7, 4096, self._random.randrange(self._most)])
        kind = self._random.randrange(8)
        if kind < 3:
            self._both(f"read {at} {count}", lambda fd: os.pread(fd, count, at), one.fds)
        elif kind < 6:
            data = self._random.randbytes(count)
            self._both(f"write {at} {count}", lambda fd: os.pwrite(fd, data, at), one.fds)
        elif kind == 6:
            self._both(f"resize {at}", lambda fd: os.ftruncate(fd, at), one.fds)
        elif self._random.random() < 0.2:
            self._both("fsync", os.fsync, one.fds)
        else:
            self._both("stat", _stat, one.fds)

    # --- names --------------------------------------------------------------------------------

    def _remove(self) -> None:
        name = self._name()
        remove = self._random.choice([os.unlink, os.unlink, os.rmdir])
        if _is_done(self._both(f"{remove.__name__} {name!r}", _at(remove, name))):
            self._forget(name)

    def _forget(self, name: str) -> None:
        """What has it open goes on, and the name is free."""
        for one in self._open:
            if one.name == name:
                one.name = "\0removed"

    def _rename(self) -> None:
        old, new = self._name(), self._name()

        def rename(root: str) -> None:
            os.rename(os.path.join(root, old), os.path.join(root, new))

        if not _is_done(self._both(f"rename {old!r} {new!r}", rename)) or old == new:
            return
        self._forget(new)
        for one in self._open:
            if one.name == old or one.name.startswith(old + "/"):
                one.name = new + one.name[len(old) :]

    def _make(self) -> None:
        name = self._name()
        self._both(f"mkdir {name!r}", _at(os.mkdir, name))

    def _list(self) -> None:
        name = os.path.dirname(self._name())
        self._both(f"list {name!r}", lambda root: sorted(os.listdir(os.path.join(root, name))))

    def _look(self) -> None:
        name = self._name()
        if not self._is_written(name):
            self._both(f"stat {name!r}", lambda root: _stat(os.path.join(root, name)))

    def _truncate(self) -> None:
        name, size = self._name(), self._random.randrange(self._most)
        if not any(one.name == name for one in self._open):
            self._both(
                f"truncate {name!r} {size}",
                lambda root: os.truncate(os.path.join(root, name), size),
            )


def _said(act: Callable[[Any], Any], side: Any) -> Any:
    try:
        return act(side)
    except OSError as error:
        return OSError, error.errno


def _is_done(said: Any) -> bool:
    return said is None


def _short(said: Any) -> str:
    if isinstance(said, tuple) and said[0] is OSError:
        return os.strerror(said[1])
    if isinstance(said, bytes):
        return f"{len(said)} bytes, {said[:8]!r}... hash {hash(said) & 0xFFFFFFFF:08x}"
    return repr(said)


def _at(act: Callable[[str], Any], name: str) -> Callable[[str], Any]:
    return lambda root: act(os.path.join(root, name))


def _stat(of: str | int) -> tuple[int, int]:
    """What it is, and a file's size."""
    found = os.stat(of)
    kind = stat.S_IFMT(found.st_mode)
    return kind, 0 if kind == stat.S_IFDIR else found.st_size


def _empty(root: str) -> None:
    for name in os.listdir(root):
        path = os.path.join(root, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def _all_of(path: str) -> object:
    if os.path.isdir(path):
        return sorted(os.listdir(path))
    with open(path, "rb") as file:
        return file.read()


def main() -> None:
    mounted, other, seed, count = sys.argv[1:]
    roots = (mounted, other)
    Operations(roots, int(seed)).run(int(count))
    print(f"{count} operations of seed {seed}: no difference")


if __name__ == "__main__":
    main()
