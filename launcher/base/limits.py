"""Limits of the user's (ulimit) that a job can meet, as errors that name them.

Floor: launcher/base. Thread: any.
"""

import resource
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from resource import RLIM_INFINITY, RLIMIT_NOFILE

OWN_DESCRIPTORS = 64  # that rdmarun or an agent needs, with mpiexec's pipes and MPI; measured: 40
HOST_DESCRIPTORS = 6  # that rdmarun needs for each host: pipes to mpiexec and to the key holder
# That an agent needs for each rank or helper: pipes, files, a connection; more at start.
RANK_DESCRIPTORS = 8
STACK_BYTES = 1 << 18  # of a thread: the usual 8 MiB may be more than `ulimit -v` leaves


class LimitError(OSError):
    """A limit is too low; the message names it and what it limits."""


@cache
def users_descriptors() -> tuple[int, int]:
    """The soft and the hard limit of descriptors with which this process was started."""
    return resource.getrlimit(RLIMIT_NOFILE)


def give_users_descriptors(least: int = 0) -> None:
    """Undoes make_room() in a child process, before that becomes another program, which needs at
    least so many."""
    soft, hard = users_descriptors()
    resource.setrlimit(RLIMIT_NOFILE, (soft if soft == RLIM_INFINITY else max(soft, least), hard))


def make_room(*, ranks: int = 0, helpers: int = 0, hosts: int = 0) -> None:
    """Raises the soft limit of descriptors, if it is too low for rdmarun with so many hosts, or for
    an agent with so many ranks and helpers; agent 0 has a connection to each of the other hosts as
    well."""
    soft, hard = users_descriptors()
    needed = OWN_DESCRIPTORS + (ranks + helpers) * RANK_DESCRIPTORS + hosts * HOST_DESCRIPTORS
    if hard != RLIM_INFINITY and hard < needed:
        what = ""
        if ranks:
            and_helpers = f" and {helpers} helpers" if helpers else ""
            what = f" for {ranks} ranks{and_helpers} on this host"
        elif hosts:
            what = f" for {hosts} hosts"
        raise LimitError(
            f"{needed} file descriptors are needed{what}, and {hard} are allowed (ulimit -n)"
        )
    if soft != RLIM_INFINITY and soft < needed:
        resource.setrlimit(RLIMIT_NOFILE, (needed, hard))


def make_most_room() -> None:
    """Raises the soft limit of descriptors to the hard one."""
    hard = resource.getrlimit(RLIMIT_NOFILE)[1]
    with suppress(ValueError):  # the hard limit is above what the kernel allows by now (fs.nr_open)
        resource.setrlimit(RLIMIT_NOFILE, (hard, hard))


def start_thread(target: Callable[..., None], *args: object) -> threading.Thread:
    """Starts a thread for which the end of the process does not wait."""
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=target, args=args, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise LimitError("no more threads may be started (ulimit -u, ulimit -v)") from None
    return thread
