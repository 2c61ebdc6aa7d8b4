"""The folder of a mount: whether it can be one, and whether it is.

Floor: rdmacoll/base. Thread: any.
"""

import os
import re
from pathlib import Path

TYPE = "fuse.rdmacoll"  # as fuse_ext/mount.cc names it


def make_folder(folder: str) -> None:
    """Makes it where it is not there. Raises ValueError, OSError as check_folder()."""
    if not os.path.lexists(folder):
        os.makedirs(folder, exist_ok=True)
    check_folder(folder)


def check_folder(folder: str) -> None:
    """Raises ValueError where nothing can be mounted there, with the remedy."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be read ({error.strerror}): give a folder that is there and empty; "
            f"if it is a mount whose process is gone: fusermount3 -u {folder}"
        ) from None
    if os.path.ismount(folder):
        raise ValueError(f"{folder} is a mount already: give another folder, or unmount that")
    if names:
        raise ValueError(f"{folder} has {len(names)} entries, which would be hidden: empty it")


def is_mount_of_ours(folder: str) -> bool:
    """Of any job, also where its process is gone."""
    return is_mounted(os.path.realpath(folder))


def is_mounted(real_folder: str) -> bool:
    """The same of a folder that has no links on its way. It waits for no process."""
    for line in Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines():
        _, target, kind, *_ = line.split(" ")
        if kind == TYPE and _unescaped(target) == real_folder:
            return True
    return False


def _unescaped(target: str) -> str:
    return re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), target)
