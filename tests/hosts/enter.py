"""Runs a command on a host: `enter PID COMMAND...`, where PID is the holder of the host's
namespaces.

It becomes the command, so that its process id, its signals and its status are the command's.

Floor: tests.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

NAMESPACES = {"user": 0x1000_0000, "mnt": 0x0002_0000, "uts": 0x0400_0000, "net": 0x4000_0000}


def enter(pid: int, kinds: Iterable[str] = NAMESPACES) -> None:
    """Keeps the current folder, and the root where that is not the machine's."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder, root, holder = os.getcwd(), os.open(f"/proc/{pid}/root", os.O_PATH), os.pidfd_open(pid)
    flags = sum(NAMESPACES[kind] for kind in kinds if is_apart(pid, kind))
    if flags and libc.setns(holder, flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter the namespaces of {pid}: {os.strerror(number)}")
    if flags & NAMESPACES["mnt"]:
        os.fchdir(root)
        os.chroot(".")
        os.chdir(folder)
    os.close(root)
    os.close(holder)


def is_apart(pid: int, kind: str) -> bool:
    """Whether that process is in another one: the kernel refuses to enter one's own user
    namespace."""
    return os.stat(f"/proc/self/ns/{kind}") != os.stat(f"/proc/{pid}/ns/{kind}")


def main(pid: str, *command: str) -> None:
    enter(int(pid))
    os.execvp(command[0], command)
