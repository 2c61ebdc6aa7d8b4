"""Runs `rdmacoll bench` as a user does: a process of its own, with no job's variables set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
LIMIT_S = 120
OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def run(*command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in OF_A_JOB}
    return subprocess.run(
        command,
        cwd=folder,
        env={**clean, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def bench(*arguments: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rdmacoll", "bench"]
    return run(*command, *arguments, folder=folder, **env)


def assert_refused(arguments: list[str], says: str, folder: Path) -> None:
    """In a job of 3 ranks: exits with 2, and says why to stderr alone."""
    done = bench(*arguments, folder=folder, RANK="0", WORLD_SIZE="3")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
