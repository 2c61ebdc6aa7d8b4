"""For workers that lose servers, or are lost: finds and stops the job's other processes, and meets
the other workers without a group, which a lost one would break.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

LIMIT_S = 40.0
TOKEN = "LC_RDMARUN_TEST_TOKEN"  # of job_runner.py


def server(number: int) -> int:
    """The process that is this server now."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            env = path.read_bytes().split(b"\0")
        except OSError:  # it has ended, or is another user's
            continue
        ours = f"{TOKEN}={os.environ[TOKEN]}".encode() in env
        if ours and f"RDMACOLL_SERVER={number}".encode() in env:
            return int(path.parent.name)
    raise LookupError(f"there is no server {number}")


def kill(number: int) -> None:
    os.kill(server(number), signal.SIGKILL)


def stop_for(seconds: float, number: int) -> None:
    pid = server(number)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def say(word: str) -> None:
    Path(f"{word}.{os.environ['RANK']}").touch()


def wait_for_word(word: str, *ranks: int) -> None:
    until = time.monotonic() + LIMIT_S
    while not all(Path(f"{word}.{rank}").exists() for rank in ranks):
        assert time.monotonic() < until, f"{ranks} have not all said {word}"
        time.sleep(0.01)
