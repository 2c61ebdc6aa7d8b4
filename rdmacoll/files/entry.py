"""What a name in a directory stands for, and how the job's Store has it.

Floor: rdmacoll/files. Thread: values.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from functools import lru_cache

HOLE = 0
FOLDER_MODE = 0o755


@dataclass(frozen=True)
class Part:
    """Bytes of a file that lie in one table; a table is written once."""

    table: int  # HOLE: none was written, and zeros are read
    size: int  # in bytes


@dataclass(frozen=True)
class File:
    """One version of a file: each one that is written is a new value of these."""

    parts: tuple[Part, ...]
    modified_ns: int  # since 1970
    mode: int = 0o644  # permissions: they are kept, and nobody is refused by them

    @property
    def tables(self) -> list[int]:
        return [part.table for part in self.parts if part.table != HOLE]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


@dataclass(frozen=True)
class TableFile(File):
    """A table of the job as a file, which nobody writes: its bytes are what servers have when they
    are read, and so it is changed all the time."""

    head: bytes = b""  # in the place of the first part
    shape: tuple[int, ...] = ()

    @property
    def tables(self) -> list[int]:
        """Not its own: it lasts as long as the job wants it."""
        return []


@dataclass(frozen=True)
class Folder:
    number: int  # under which its names are
    modified_ns: int  # when it was made; its own word has what was later (Folders.changed_ns)
    mode: int = FOLDER_MODE


Entry = File | Folder


def to_word(entries: dict[str, Entry], changed_ns: int) -> str:
    """No two are the same: who finds its word in the Store has put it there itself. The tables that
    are named stand by themselves, for servers (ps/freeing/held.py)."""
    files = [entry for entry in entries.values() if isinstance(entry, File)]
    tables = [table for file in files for table in file.tables]
    packed = {name: _packed(entry) for name, entry in entries.items()}
    return json.dumps([secrets.token_hex(8), tables, packed, changed_ns])


def from_word(word: str) -> tuple[dict[str, Entry], int]:
    """The entries, and when a name of them has come or gone last, or what was set in its place."""
    entries, changed_ns = _read(word)
    return dict(entries), changed_ns


@lru_cache(maxsize=16)  # who opens a file looks twice, and folders may be large
def _read(word: str) -> tuple[dict[str, Entry], int]:
    _, _, packed, changed_ns = json.loads(word)
    return {name: _unpacked(one) for name, one in packed.items()}, changed_ns


def _packed(entry: Entry) -> list[object]:
    if isinstance(entry, Folder):
        return ["folder", entry.modified_ns, entry.mode, entry.number]
    parts = [[part.table, part.size] for part in entry.parts]
    return ["file", entry.modified_ns, entry.mode, parts]


def _unpacked(packed: list[object]) -> Entry:
    kind, modified_ns, mode, what = packed
    assert isinstance(modified_ns, int) and isinstance(mode, int)
    if kind == "folder":
        assert isinstance(what, int)
        return Folder(what, modified_ns, mode)
    assert isinstance(what, list)
    return File(tuple(Part(table, size) for table, size in what), modified_ns, mode)
