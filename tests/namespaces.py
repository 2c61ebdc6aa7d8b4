"""Runs a command in a namespace of its own: `namespaces.py user|mount COMMAND...`.

unshare(1) fails in a chroot: the kernel makes no user namespace there, and unshare cannot make the
mounts private. Here root leaves the chroot first, and comes back in the new namespace.

Floor: tests.
"""

import ctypes
import os
import subprocess
import sys

TRY_S = 60
KINDS = {"mount": 0x0002_0000, "user": 0x1000_0000}  # CLONE_NEWNS, CLONE_NEWUSER


def in_namespace(kind: str) -> list[str]:
    """What to put in front of a command. Skips the test where this user may make no namespace."""
    command = [sys.executable, __file__, kind]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=TRY_S)
    if tried.stderr.startswith(f"no {kind} namespace: "):
        import pytest  # for the tests alone, not for each command

        pytest.skip(tried.stderr.strip())
    return command


def leave_chroot() -> str:
    """Gives the path of the chroot as seen from outside. Without a chroot, or as another user than
    root, who cannot leave it, that is /."""
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
