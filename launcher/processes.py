"""What Linux offers against orphans: parent-death signals, sub-reapers, killing a whole tree.

Floor: launcher. Thread: the main one.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)  # loaded now: used between fork and exec


def die_with_parent(sig: signal.Signals, parent: int) -> None:
    """From now on `sig` comes when the parent ends; it has come already if that is too late."""
    _prctl(PR_SET_PDEATHSIG, sig)
    if os.getppid() != parent:
        os.kill(os.getpid(), sig)


def become_subreaper() -> None:
    """Orphans among our descendants become our children, not init's: none gets away."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def own_module(name: str) -> list[str]:
    """The command that runs main() of a module of this package.

    Not `python -m`: that looks in the current folder first, where a checkout may lie.
    """
    path = "sys.path = [folder for folder in sys.path if folder]"
    run = f"from {__package__}.{name} import main; sys.exit(main())"
    return [sys.executable, "-c", f"import sys; {path}; {run}"]


def reap(leaders: Collection[int]) -> Iterator[tuple[int, int]]:
    """Reaps the children that have ended: (pid, status; negative for the signal that killed it).

    What is left of the process group that one of `leaders` led is killed with it.
    """
    while (pid := _ended_child()) is not None:
        if pid in leaders:
            kill_group(pid, signal.SIGKILL)  # unreaped, its pid cannot be another's yet
        yield pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_descendants(timeout_s: float = 5.0) -> None:
    """Kills and reaps children until there are none; needs become_subreaper().

    The deadline is for processes that the kernel cannot end (waiting for a dead disk, say).
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def kill_living_descendants(timeout_s: float = 5.0) -> None:
    """The same beside another thread that reaps: leaves the reaping to it."""
    deadline = time.monotonic() + timeout_s
    while (living := _children(living=True)) and time.monotonic() < deadline:
        for pid in living:
            with suppress(ProcessLookupError):  # reaped since we looked
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def kill_group(pid: int, sig: signal.Signals) -> None:
    """Signals the process group that `pid` leads or led."""
    with suppress(ProcessLookupError, PermissionError):  # nobody left, or only setuid programs
        os.killpg(pid, sig)


def _ended_child() -> int | None:
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if ended is None else ended.si_pid


def _children(living: bool = False) -> list[int]:
    """Living: without those that have ended and are not reaped yet."""
    me, found = os.getpid(), []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_bytes().rpartition(b")")[2].split()
        except OSError:  # ended while we looked
            continue
        if int(after_name[1]) == me and not (living and after_name[0] == b"Z"):
            found.append(int(stat.parent.name))
    return found


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}, {value}): {os.strerror(error)}")
