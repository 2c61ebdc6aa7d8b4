"""What a fork does not carry over, and what it must not: threads, CUDA, the state of generators.

Floor: launcher/preload. Thread: the main one.
"""

import os
import sys
import threading
from pathlib import Path

USES_CUDA = 1


def unsafe_to_fork() -> str:
    """Why ranks forked from this process would not work; empty if they would.

    A process forked for this tells about CUDA. Some libraries end their threads before a fork and
    start them again when they need them (OpenBLAS does), so the threads are counted behind it.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(USES_CUDA if _cuda_is_lost() else 0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == USES_CUDA:
        return "it has begun to use CUDA when it was imported, which then fails in forked ranks"
    if names := _other_threads():
        count = f"{len(names)} thread{'s' if len(names) > 1 else ''}"
        return f"it has left {count} behind ({', '.join(names)}), which forked ranks would lack"
    return ""


def _cuda_is_lost() -> bool:
    cuda = sys.modules.get("torch.cuda")
    return cuda is not None and bool(cuda._is_in_bad_fork())


def _other_threads() -> list[str]:
    """By their names in python, if they are python's, else the kernel's."""
    python = {thread.native_id: thread.name for thread in threading.enumerate()}
    found = []
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) != os.getpid():
            found.append(python.get(int(task.name)) or (task / "comm").read_text().strip())
    return sorted(found)


def reseed() -> None:
    """Gives this process numbers of its own, as a new one has. python's `random` does so itself."""
    if (process := sys.modules.get("multiprocessing.process")) is not None:
        process.current_process().authkey = os.urandom(32)
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.seed()
