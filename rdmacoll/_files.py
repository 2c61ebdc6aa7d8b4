"""Files in folders where others may write: whatever they have put there under a name, a link, a
pipe, a file of theirs, is neither followed nor opened nor waited for. csrc/base/private_file.h is
the same for the dumps of the engine.

A file is made under a name that nobody can guess, and then takes the place of the one before.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PRIVATE = 0o600
SHARED = 0o666  # less what the umask says: for results that are meant for others, too


def write(path: Path, data: str | bytes, mode: int = PRIVATE) -> None:
    """The file appears whole. OSError names it."""
    with _unfinished(path, mode) as (file, name):
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.replace(name, path)


def create(path: Path) -> IO[str]:
    """An empty one, to be written as time goes by; private."""
    with _unfinished(path, PRIVATE) as (file, name):
        os.replace(name, path)
        return open(os.dup(file.fileno()), "w")


def make_folder(path: Path) -> None:
    """With those above it that are missing; those that it makes are for this user alone."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def refusal(path: Path) -> str:
    """Why a file may not take the place of what is there; empty: it may."""
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
    """A regular file of no more bytes than that; neither a link, nor what would be waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"has more than {most} bytes", str(path))
    return data


@contextlib.contextmanager
def _unfinished(path: Path, mode: int) -> Iterator[tuple[IO[bytes], Path]]:
    """A new file beside `path`, which is gone at the end unless it got its name."""
    if why := refusal(path):
        raise OSError(errno.EEXIST, why, str(path))
    name = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, mode)
    except OSError as error:  # it names what the user has named
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with open(fd, "wb") as file:
            yield file, name
    finally:
        name.unlink(missing_ok=True)
