"""Runs rdmarun as a user does, on scripts of tests, and finds what it leaves behind.

Floor: tests.
"""

import os
import secrets
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

LIMIT_S = 180  # for anything here, also on a busy machine; a hang fails by it
TOKEN = "LC_RDMARUN_TEST_TOKEN"  # LC_: mpiexec and the agents are to get it, too
SHM = Path("/dev/shm")

ONE_HOST = ["-np", "2"]
TWO_HOSTS = ["-np", "2", "-H", "localhost:1,127.0.0.1:1"]  # through mpiexec
both = pytest.mark.parametrize("options", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])


class Jobs:
    """Starts jobs in one folder; all their processes carry a token in their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = sys.executable
        self._token = secrets.token_hex(8)

    @property
    def rdmarun(self) -> list[str]:
        return [self.python, "-m", "rdmacoll.launcher"]

    def script(self, text: str, name: str = "script.py") -> str:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    def start(self, *args: str, **env: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self.rdmarun, *args],
            cwd=self.folder,
            env=self.env(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def env(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, TOKEN: self._token, **more}

    def run(self, *args: str, **env: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*args, **env)
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill_all()
            out, err = process.communicate()
            pytest.fail(f"rdmarun {args} did not end; it said:\n{out}\n{err}")
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def run_script(self, text: str, *options: str) -> "subprocess.CompletedProcess[str]":
        return self.run(*options, self.script(text))

    def processes(self) -> list[psutil.Process]:
        """Every process of our jobs that is alive."""
        found = []
        for process in psutil.process_iter():
            try:
                alive = process.status() != psutil.STATUS_ZOMBIE
                if alive and process.environ().get(TOKEN) == self._token:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
                pass
        return found

    def kill_all(self) -> None:
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def assert_none_left(self) -> None:
        wait_for(lambda: not self.processes(), f"the end of {self.processes()}")

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.folder.glob(pattern))


@contextmanager
def clean_jobs(folder: Path) -> Iterator[Jobs]:
    """No job of a test may leave a process or a shared-memory file behind."""
    shm_before = set(SHM.iterdir())
    jobs = Jobs(folder)
    try:
        yield jobs
        jobs.assert_none_left()
    finally:
        jobs.kill_all()
    wait_for(lambda: not shm_files_of_nobody(shm_before), "the end of files in /dev/shm")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def command_of(process: psutil.Process | None) -> list[str]:
    """Empty where the process has ended."""
    try:
        return process.cmdline() if process is not None else []
    except psutil.Error:
        return []


def shm_files_of_nobody(before: set[Path]) -> list[Path]:
    """MPI's files of our user that are new and that no process maps: nobody will remove them.

    Files of other jobs on the machine are mapped, except for a moment after they were made.
    """
    new = [path for path in SHM.iterdir() if "mpi" in path.name and path not in before]
    mapped = ""
    for maps in Path("/proc").glob("[0-9]*/maps") if new else ():
        with suppress(OSError):  # it has ended, or is another user's
            mapped += maps.read_text()
    left = []
    for path in new:
        with suppress(FileNotFoundError):  # removed since
            if path.stat().st_uid == os.geteuid() and str(path) not in mapped:
                left.append(path)
    return left
