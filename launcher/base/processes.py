"""What Linux offers against orphans: parent-death signals, sub-reapers, killing a whole tree.

Floor: launcher/base. Thread: the main one.
"""

import ctypes
import os
import select
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

FLAGS, PF_EXITING = 5, 0x4  # in /proc/PID/stat, behind the state; include/linux/sched.h
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# What unmounts a folder once the process that has served it is gone (rdmacoll/mount/unmounter.py).
UNMOUNTS = (b"rdma-unmount\n", b"fusermount3\n")
UNMOUNT_S = 2.0
_libc = ctypes.CDLL(None, use_errno=True)  # loaded now: used between fork and exec


def die_with_parent(sig: signal.Signals, parent: int) -> None:
    """From now on `sig` comes when the parent ends; it has come already if that is too late."""
    _prctl(PR_SET_PDEATHSIG, sig)
    if os.getppid() != parent:
        os.kill(os.getpid(), sig)


def wait_until_gone(pid: int) -> None:
    """Returns once a process has ended and its children have another parent."""
    with suppress(ProcessLookupError):  # it has ended, and been reaped
        end = os.pidfd_open(pid)
        try:
            select.select([end], [], [])
        finally:
            os.close(end)


def is_ending(pid: int) -> bool:
    """Whether it is gone, or has begun to end: it closes what it has open before others see that it
    has ended."""
    try:
        about = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return True
    state, *numbers = about.rpartition(")")[2].split()
    return state in "ZX" or bool(int(numbers[FLAGS]) & PF_EXITING)


def become_subreaper() -> None:
    """Orphans among our descendants become our children, not init's: none gets away."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def reap(leaders: Collection[int]) -> Iterator[tuple[int, int]]:
    """Reaps the children that have ended: (pid, status; negative for the signal that killed it).

    What is left of the process group that one of `leaders` led is killed with it.
    """
    while (pid := _ended_child()) is not None:
        if pid in leaders:
            kill_group(pid, signal.SIGKILL)  # unreaped, its pid cannot be another's yet
        yield pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_descendants(timeout_s: float = 5.0) -> None:
    """Kills and reaps children until there are none; needs become_subreaper()."""
    kill_unreaped(timeout_s)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def kill_unreaped(timeout_s: float = 5.0) -> None:
    """The same without the reaping, for where another thread may do that.

    The deadline is for processes that the kernel cannot end (waiting for a dead disk, say).
    """
    began = time.monotonic()
    deadline = began + timeout_s
    known: set[int] = set()
    all_ended = False
    while time.monotonic() < deadline:
        children = set(_children())
        # Orphans become our children when their parent ends. They may escape the look during which
        # that happens, but not the one after it.
        if all_ended and children <= known:
            return
        for pid in children:
            with suppress(OSError):  # reaped since we looked
                if not (time.monotonic() < began + UNMOUNT_S and _unmounts(pid)):
                    os.kill(pid, signal.SIGKILL)
        known, all_ended = children, all(map(_has_ended, children))
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


def _unmounts(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_bytes() in UNMOUNTS


def _has_ended(child: int) -> bool:
    """With all its threads, which the state in /proc does not tell."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # reaped
        return True


def _children() -> list[int]:
    me, found = os.getpid(), []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_bytes().rpartition(b")")[2].split()
        except OSError:  # ended while we looked
            continue
        if int(after_name[1]) == me:
            found.append(int(stat.parent.name))
    return found


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}, {value}): {os.strerror(error)}")
