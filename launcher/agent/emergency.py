"""Signals of an agent that must work even while its main thread hangs in MPI.

A call to MPI may not return once another agent is gone, and python runs signal handlers in the main
thread only, between its own instructions. So a thread of its own hears them.
Floor: launcher/agent. Thread: its own, beside the agent's main one.
"""

import os
import signal
from contextlib import suppress

from rdmacoll.launcher.base.limits import start_thread
from rdmacoll.launcher.base.processes import kill_unreaped

EMERGENCY = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


def watch_signals() -> int:
    """A descriptor that is readable after SIGCHLD. The other signals end the process and all
    below it: mpiexec or the subreaper is gone or wants us gone, no time to agree with anybody."""
    heard, hear = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(hear, False)  # as set_wakeup_fd demands
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(hear, warn_on_full_buffer=False)
    for sig in (signal.SIGCHLD, *EMERGENCY):
        signal.signal(sig, lambda *_: None)  # set_wakeup_fd needs python's own handler
    start_thread(_listen, heard, wake)
    return woken


def _listen(heard: int, wake: int) -> None:
    while True:
        for sig in os.read(heard, 4096):
            if sig in EMERGENCY:
                kill_unreaped()
                os._exit(128 + sig)
        with suppress(BlockingIOError):  # it is readable already
            os.write(wake, b"\0")
