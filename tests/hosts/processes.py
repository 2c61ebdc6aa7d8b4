"""The processes of a host: all that are in its network namespace, found in /proc.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

END_S = 20.0  # for the kernel to end what was killed

Namespace = tuple[int, int]


def network_of(pid: int) -> Namespace:
    """OSError where the process has ended."""
    found = os.stat(f"/proc/{pid}/ns/net")
    return found.st_dev, found.st_ino


def processes_in(network: Namespace) -> list[int]:
    inside = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):  # it has ended, or is another user's
                if network_of(int(name)) == network:
                    inside.append(int(name))
    return inside


def end_all(network: Namespace) -> None:
    """Kills until none is left: one that was just forked is missed by the first look."""
    if network == network_of(os.getpid()):
        raise ValueError("this is the machine's own network, and not that of a host")
    deadline = time.monotonic() + END_S
    while left := processes_in(network):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {left} live {END_S:.0f} s after SIGKILL")
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
