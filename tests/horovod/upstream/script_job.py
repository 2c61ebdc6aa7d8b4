"""Runs a script as a job of rdmarun, with torchvision from stubs/, and may kill one of its ranks.

Floor: tests. Thread: the main one; a timer ends a job at its deadline.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from job_runner import Jobs, clean_jobs  # noqa: E402 (it lies in tests/)

LIMIT_S = 300  # for one job


@dataclass(frozen=True)
class Kill:
    """A rank is killed once a line has this text, and is started again or not."""

    rank: int
    when: str
    comes_back: bool

    @property
    def how(self) -> str:
        return f"rank {self.rank} killed, {'comes back' if self.comes_back else 'others go on'}"


@dataclass
class Output:
    """What a job has said, and how it has ended."""

    lines: list[str] = field(default_factory=list)
    code: int = 0
    killed_at: int | None = None  # the number of the line
    faults: list[str] = field(default_factory=list)

    def of_ranks(self, pattern: str, after: int = 0) -> Iterator[tuple[int, re.Match[str]]]:
        """Which rank has said it, for each line that has the pattern in it."""
        for line in self.lines[after:]:
            tag = re.match(r"\[(\d+)\]: ", line)
            if tag and (found := re.search(pattern, line)):
                yield int(tag[1]), found


def run_job(
    folder: Path, options: list[str], script: Path, args: list[str], kill: Kill | None
) -> Output:
    """Its folder is its home, too, as scripts lock a file there."""
    output = Output()
    path = os.pathsep.join(filter(None, [str(HERE / "stubs"), os.environ.get("PYTHONPATH")]))
    try:
        with clean_jobs(folder) as jobs:
            environment = jobs.env({"PYTHONPATH": path, "HOME": str(folder)})
            command = [*jobs.rdmarun, *options, str(script), *args]
            with subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as job:
                _listen(job, jobs, output, script, kill)
            output.code = job.returncode
    except AssertionError as error:  # something of it is left
        output.faults.append(str(error))
    if output.code != 0:
        output.faults.append(f"exit status {output.code}")
    if kill is not None and output.killed_at is None:
        output.faults.append(f"no line had {kill.when!r} while rank {kill.rank} was alive")
    return output


def _listen(
    job: subprocess.Popen[str], jobs: Jobs, output: Output, script: Path, kill: Kill | None
) -> None:
    def end() -> None:
        output.faults.append(f"it did not end within {LIMIT_S} s")
        jobs.kill_all()

    timer = threading.Timer(LIMIT_S, end)
    timer.start()
    try:
        assert job.stdout is not None
        for line in job.stdout:
            output.lines.append(line.rstrip())
            if kill is not None and output.killed_at is None and kill.when in line:
                for rank in _processes_of(jobs, script, kill.rank):
                    rank.kill()
                    output.killed_at = len(output.lines)
    finally:
        timer.cancel()


def _processes_of(jobs: Jobs, script: Path, rank: int) -> Iterator[psutil.Process]:
    """The rank itself: agents have its script among their arguments, but no rank."""
    for process in jobs.processes():
        with suppress(psutil.Error):  # it has ended since
            if process.environ().get("RANK") == str(rank) and str(script) in process.cmdline():
                yield process
