"""Limits of the user's that a job can meet, told in a line: descriptors before it starts, threads.

Floor: launcher. Thread: any.
"""

import resource
import threading
from collections.abc import Callable
from resource import RLIM_INFINITY, RLIMIT_NOFILE

OWN_DESCRIPTORS = 64  # of rdmarun or an agent, with what mpiexec and MPI take; measured: 40
RANK_DESCRIPTORS = 8  # of an agent, for each rank: pipes, files, a connection, and while it starts
STACK_BYTES = 1 << 18  # of a thread: the usual 8 MiB may be more than `ulimit -v` leaves


class LimitError(OSError):
    """Too few are allowed; the message says of what, and by which limit."""


def make_room(ranks: int) -> tuple[int, int]:
    """Raises the soft limit for so many ranks, if it must. What both limits were."""
    soft, hard = resource.getrlimit(RLIMIT_NOFILE)
    needed = OWN_DESCRIPTORS + ranks * RANK_DESCRIPTORS
    if hard != RLIM_INFINITY and hard < needed:
        raise LimitError(
            f"{needed} file descriptors are needed for {ranks} ranks on this host, and {hard} are "
            "allowed (ulimit -n)"
        )
    if soft != RLIM_INFINITY and soft < needed:
        resource.setrlimit(RLIMIT_NOFILE, (needed, hard))
    return soft, hard


def start_thread(target: Callable[..., None], *args: object) -> threading.Thread:
    """One that the end of the process does not wait for."""
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=target, args=args, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise LimitError("no more threads may be started (ulimit -u, ulimit -v)") from None
    return thread
