"""Makes the namespaces of a host and keeps them: `keeper switch`, `keeper host NAME FOLDER SWITCH`.

Says the process id of the holder, whose namespaces they are, and stays until its standard input
ends: when who started it closes that, or dies. Then it ends the holder, so that nobody enters any
more, and what runs there. With the last process the kernel removes the namespaces.

FOLDER holds the file `hosts` of all names, SWITCH is the switch's holder.

Floor: tests.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

from namespaces import unshare

from hosts import FORBIDDEN
from hosts.enter import enter
from hosts.processes import end_all, network_of

BOOT_ID = "/proc/sys/kernel/random/boot_id"
PR_SET_PDEATHSIG = 1
UP = b"up"


def become_root() -> None:
    """In a user namespace of its own, in which this user has root's number and rights."""
    user, group = os.geteuid(), os.getegid()
    unshare("user")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def switch() -> None:
    if os.geteuid() != 0:
        become_root()
    unshare("net")


def host(name: str, folder: str, switch_holder: str) -> None:
    """A host of its own also to what reads the boot id and to who looks into /dev/shm."""
    enter(int(switch_holder), ["user"])
    unshare("net", "uts", "mount")
    socket.sethostname(name)
    boot_id = Path(folder, f"boot-{name}")
    boot_id.write_text(f"{uuid.uuid4()}\n")
    mount("--bind", str(boot_id), BOOT_ID)
    mount("--bind", f"{folder}/hosts", "/etc/hosts")
    mount("-t", "tmpfs", "none", "/dev/shm")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def hold(made: int, kind: str, arguments: tuple[str, ...]) -> None:
    try:
        switch() if kind == "switch" else host(*arguments)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSPC):  # the second: none are left to make
            raise
        print(f"this user can make no {kind} of namespaces: {error}", file=sys.stderr)
        sys.exit(FORBIDDEN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.write(made, UP)
    while True:
        signal.pause()


def main(kind: str, *arguments: str) -> None:
    ready, made = os.pipe()
    holder = os.fork()
    if holder == 0:
        hold(made, kind, arguments)
    os.close(made)
    if os.read(ready, len(UP)) != UP:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(holder, 0)[1]))
    network = network_of(holder)
    print(holder, flush=True)
    sys.stdin.read()
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    end_all(network)
