"""Files in folders where others may write. They may have put something there under the same name: a
link is not followed, a pipe not waited for, and a file of theirs not opened.

A new file is made under a name that nobody can guess, and then renamed to its own. Only what the
user has opened, and names as /dev/stdout for instance, is written as it is.
csrc/base/private_file.h does the same for the engine's dumps.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PRIVATE = 0o600
SHARED = 0o666  # less the umask: for results, which others may read


def write(path: Path, data: str | bytes, mode: int = PRIVATE) -> None:
    """Nobody sees a half-written file. OSError names the path."""
    data = data.encode() if isinstance(data, str) else data
    if (device := _device(path)) is not None:
        _write_to_device(path, device, data)
        return
    with _unfinished(path, mode) as (file, name):
        file.write(data)
        file.flush()
        os.replace(name, path)


def create(path: Path) -> IO[str]:
    """An empty private file that the caller writes bit by bit. OSError names the path."""
    if (device := _device(path)) is not None:
        return open(device, "w", closefd=isinstance(device, str))
    with _unfinished(path, PRIVATE) as (file, name):
        os.replace(name, path)
        return open(os.dup(file.fileno()), "w")


def make_folder(path: Path) -> None:
    """Makes the folder and those above it that are missing, all for this user alone."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def is_device(path: Path) -> bool:
    """Whether write() takes the path for what the user has opened, or for /dev/null."""
    return _device(path) is not None


def refusal(path: Path) -> str:
    """Why write() may not write there; empty: it may."""
    if (device := _device(path)) is not None:
        try:
            os.stat(device)
        except OSError:
            return "it is not open here; the ranks of a job have no descriptor above 2 of rdmarun's"
        return ""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error.strerror)
    if not stat.S_ISREG(there.st_mode):
        return "there is something else than a regular file; remove it, or name another file"
    if there.st_uid != os.geteuid():
        return f"it belongs to user {there.st_uid}; remove it, or name another file"
    return ""


def read(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes. OSError for a link or a pipe."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"has more than {most} bytes", str(path))
    return data


def _device(path: Path) -> int | str | None:
    """What open() takes for a path that names no place for a file; else None."""
    if match := re.fullmatch(r"/dev/fd/([0-9]{1,9})", str(path)):
        return int(match[1])
    known: dict[str, int | str] = {"/dev/stdout": 1, "/dev/stderr": 2, os.devnull: os.devnull}
    return known.get(str(path))


def _write_to_device(path: Path, device: int | str, data: bytes) -> None:
    try:
        with open(device, "wb", closefd=isinstance(device, str)) as file:
            file.write(data)
    except OSError as error:  # has no name where a descriptor was opened
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def _unfinished(path: Path, mode: int) -> Iterator[tuple[IO[bytes], Path]]:
    """A new file beside `path`, and its name. It is removed at the end unless it was renamed."""
    if why := refusal(path):
        raise OSError(errno.EEXIST, why, str(path))
    name = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, mode)
    except OSError as error:  # names the random name, which tells the user nothing
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with open(fd, "wb") as file:
            yield file, name
    finally:
        name.unlink(missing_ok=True)
