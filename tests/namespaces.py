"""Runs a command in a namespace of its own: `namespaces.py user|mount COMMAND...`.

unshare(1) does as much, but not in a chroot: the kernel makes no user namespace there, and unshare
cannot make the mounts private. Root leaves the chroot here, and comes back in the new namespace.

Floor: tests.
"""

import ctypes
import os
import subprocess
import sys

KINDS = {"mount": 0x0002_0000, "user": 0x1000_0000}  # CLONE_NEWNS, CLONE_NEWUSER


def in_namespace(kind: str) -> list[str]:
    """What to put in front of a command."""
    return [sys.executable, __file__, kind]


def leave_chroot() -> str:
    """Says where its root is, as seen from outside. Elsewhere, and of other users, that is /."""
    root = os.open("/", os.O_PATH)
    processes = os.open("/proc", os.O_PATH)
    mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    ctypes.CDLL(None).setns(mounts, KINDS["mount"])
    return os.readlink(f"self/fd/{root}", dir_fd=processes)


def main(kind: str, *command: str) -> None:
    folder = os.getcwd()
    root = leave_chroot()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(KINDS[kind]) != 0:
        sys.exit(f"no {kind} namespace: {os.strerror(ctypes.get_errno())}")
    if kind == "mount":
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    os.chroot(root)
    os.chdir(folder)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
