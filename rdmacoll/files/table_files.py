"""TableFiles: the job's dense tables as files in NumPy's format, one folder of them, read only.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import io
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from .board import FileBoard
from .entry import HOLE, Entry, Folder, Part, TableFile
from .reading import FLOAT

if TYPE_CHECKING:
    from .. import _C

NAME = ".tables"  # in the root; `ls` does not show it
FOLDER = Folder(number=(1 << 63) - 1, modified_ns=0, mode=0o555)
SUFFIX = ".npy"
MODE = 0o444


class TableFiles:
    def __init__(self, client: _C.PsClient, board: FileBoard) -> None:
        self._client = client
        self._board = board

    def all(self) -> dict[str, Entry]:
        return {
            _quoted(name) + SUFFIX: _file(number, shape)
            for name, number, shape in self._board.dense_tables()
        }

    def find(self, file_name: str) -> TableFile | None:
        name = _unquoted(file_name.removesuffix(SUFFIX))
        if file_name != _quoted(name) + SUFFIX:
            return None
        table = None
        with suppress(UnicodeEncodeError):  # no table has such a name
            table = self._board.find_table(name)
        if table is None:
            return None
        self._client.create(table.number, table.spec)
        return _file(table.number, table.shape)


def _file(number: int, shape: tuple[int, ...]) -> TableFile:
    head = _head(shape)
    parts = Part(HOLE, len(head)), Part(number, math.prod(shape) * FLOAT)
    return TableFile(parts, 0, MODE, head, shape)


def _head(shape: tuple[int, ...]) -> bytes:
    about: dict[str, Any] = {"descr": "<f4", "fortran_order": False, "shape": shape}
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, about)
    return out.getvalue()


def _quoted(name: str) -> str:
    """Names of tables may have what names of files cannot."""
    return name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")


def _unquoted(name: str) -> str:
    return name.replace("%00", "\0").replace("%2F", "/").replace("%25", "%")
