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
# CLONE_NEWNS and its like
KINDS = {"mount": 0x0002_0000, "uts": 0x0400_0000, "user": 0x1000_0000, "net": 0x4000_0000}


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


def unshare(*kinds: str) -> None:
    """Moves this process into new namespaces of these kinds."""
    folder = os.getcwd()
    root = leave_chroot()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(sum(KINDS[kind] for kind in kinds)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    if "mount" in kinds:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    os.chroot(root)
    os.chdir(folder)


def main(kind: str, *command: str) -> None:
    try:
        unshare(kind)
    except OSError as error:
        sys.exit(f"no {kind} namespace: {error.strerror}")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
