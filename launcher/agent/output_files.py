"""The files of --output-filename: DIR/rank.N/stdout, DIR/rank.N/stderr, DIR/server.N/stdout, ...

DIR may lie in a folder where others can write, and they may have put something there before. Their
links are not followed. Files and folders of theirs, and pipes, are neither opened nor removed.
Floor: launcher/agent. Thread: the agent's.
"""

import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path

NAMES = ("stdout", "stderr")
LINKS_LIMIT = 40  # on the way to DIR; the kernel's own limit
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileError(OSError):
    """A file or folder cannot be used; the message names it and the remedy."""


def open_output_files(folder: Path, name: str, is_restart: bool) -> tuple[int, int]:
    """Descriptors of the two files of a process, for appending. `folder` is absolute.

    A restart adds to the files that are there; otherwise they are replaced.
    """
    own_folder = folder / name
    at = _open_folder(folder)
    try:
        within = _enter(at, name, own_folder)
    finally:
        os.close(at)
    opened: list[int] = []
    try:
        status = os.fstat(within)
        if status.st_uid != os.geteuid():
            raise FileError(f"{own_folder} is of {_user(status)}; choose another DIR")
        for output in NAMES:
            opened.append(_open_file(within, output, own_folder / output, is_restart))
    except OSError:
        for fd in opened:
            os.close(fd)
        raise
    finally:
        os.close(within)
    return opened[0], opened[1]


def _open_folder(folder: Path) -> int:
    """Opens it step by step from the root, and looks at each link before it follows it."""
    at = os.open("/", _FOLDER)
    names, path, links = deque(folder.parts[1:]), Path("/"), 0
    try:
        while names:
            name = names.popleft()
            if (target := _link(at, name, path / name)) is None:
                at, before, path = _enter(at, name, path / name), at, path / name
                os.close(before)
                continue
            links += 1
            if links > LINKS_LIMIT:
                raise FileError(f"{folder}: too many links on the way; choose another DIR")
            names.extendleft(reversed(Path(target).parts))
            if target.startswith("/"):
                names.popleft()
                at, before, path = os.open("/", _FOLDER), at, Path("/")
                os.close(before)
    except OSError:
        os.close(at)
        raise
    return at


def _link(at: int, name: str, path: Path) -> str | None:
    """Where it leads, if it is a link of this user's or of root's; None if it is no link."""
    try:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    except OSError:  # _enter() makes it, or says why it cannot
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISLNK(status.st_mode):
            return None
        if status.st_uid not in (0, os.geteuid()):
            raise FileError(f"{path} is a link of {_user(status)}; choose another DIR")
        return os.readlink("", dir_fd=fd)  # of the very link that was looked at
    finally:
        os.close(fd)


def _enter(at: int, name: str, path: Path) -> int:
    """Opens a folder in another. If there is none, makes one that only this user can enter."""
    try:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=at)
        return os.open(name, _FOLDER, dir_fd=at)
    except NotADirectoryError:  # also for a link
        raise FileError(f"{path} is no folder; remove it, or choose another DIR") from None
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None


def _open_file(at: int, name: str, path: Path, is_restart: bool) -> int:
    with suppress(FileNotFoundError):
        _check_file(os.stat(name, dir_fd=at, follow_symlinks=False), path)
        if not is_restart:
            os.unlink(name, dir_fd=at)
    try:
        fd = os.open(name, _FILE if is_restart else _FILE | os.O_EXCL, 0o600, dir_fd=at)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    try:
        _check_file(os.fstat(fd), path)
    except FileError:
        os.close(fd)
        raise
    return fd


def _check_file(status: os.stat_result, path: Path) -> None:
    """It must have one name only: others may have made this name for another file of this user."""
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise FileError(f"{path} is no plain file with one name; remove it, or choose another DIR")
    if status.st_uid != os.geteuid():
        raise FileError(f"{path} is of {_user(status)}; remove it, or choose another DIR")


def _user(status: os.stat_result) -> str:
    return f"another user (uid {status.st_uid})"
