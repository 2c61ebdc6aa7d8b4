"""Does one thing in a folder again and again, and says how often: `loops.py WHAT FOLDER SAID`.

It ends with status 0 where the mount is gone, and with 1 where what is there is not what it has put
there. Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

KEPT = bytes(range(256)) * 8192  # 2 MB
GONE = (errno.ENOTCONN, errno.ECONNABORTED)


def write(folder: Path, count: int) -> None:
    """A file that is closed is whole, and older ones stay as they are."""
    file = folder / f"written {count % 3}"
    file.write_bytes(KEPT[count % 256 :])
    assert file.read_bytes() == KEPT[count % 256 :]


def change(folder: Path, count: int) -> None:
    with (folder / "kept").open("r+b") as file:
        file.seek(count % len(KEPT))
        file.write(KEPT[count % len(KEPT) :][:1000])


def synchronise(folder: Path, count: int) -> None:
    with (folder / "log").open("ab") as file:
        file.write(b"line\n")
        file.flush()
        os.fsync(file.fileno())


def read(folder: Path, _count: int) -> None:
    assert (folder / "kept").read_bytes() == KEPT


def resize(folder: Path, count: int) -> None:
    with (folder / "resized").open("ab") as file:
        file.truncate(count % 5 * 1_000_000)


def rename(folder: Path, count: int) -> None:
    (folder / "renamed").mkdir(exist_ok=True)
    (folder / "new").write_bytes(b"new")
    (folder / "new").rename(folder / "renamed" / str(count % 10))


def remove(folder: Path, _count: int) -> None:
    (folder / "removed").write_bytes(b"x")
    (folder / "removed").unlink()
    (folder / "folder").mkdir()
    (folder / "folder").rmdir()


def look(folder: Path, _count: int) -> None:
    assert "kept" in os.listdir(folder)
    assert (folder / "kept").stat().st_size == len(KEPT)
    os.statvfs(folder)


LOOPS: dict[str, Callable[[Path, int], None]] = {
    one.__name__: one for one in (write, change, synchronise, read, resize, rename, remove, look)
}


def main() -> None:
    what, folder, said = LOOPS[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3])
    count = 0
    while True:
        try:
            what(folder, count)
        except OSError as error:
            sys.exit(0 if error.errno in GONE else f"{what.__name__}: {error}")
        count += 1
        said.with_suffix(".new").write_text(str(count))
        said.with_suffix(".new").rename(said)


if __name__ == "__main__":
    main()
