"""The ranks of one host: started as plain python processes, reaped, and ended together.

Floor: launcher. Thread: the agent's; the ranks' parent-death signal hangs on it.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .job import Job
from .output import RankStream, Sink
from .processes import die_with_parent, kill_group
from .rank_env import Attempt, rank_env

GRACE_S = 5.0  # between the signal that asks a rank to end and the one that makes it


@dataclass
class Rank:
    rank: int
    process: subprocess.Popen[bytes]
    stdout: RankStream
    stderr: RankStream
    returncode: int | None = None  # negative: the signal that killed it

    @property
    def pid(self) -> int:
        return self.process.pid


class Ranks:
    """All ranks of this host, by rank."""

    def __init__(
        self, job: Job, agent: int, selector: selectors.BaseSelector, out: Sink, err: Sink
    ) -> None:
        self._job = job
        self._agent = agent
        self._selector = selector
        self._sinks = out, err
        self._by_rank: dict[int, Rank] = {}
        self._kill_at: float | None = None
        self.ending = False

    def __iter__(self) -> Iterator[Rank]:
        return iter(self._by_rank.values())

    @property
    def live(self) -> list[Rank]:
        return [rank for rank in self if rank.returncode is None]

    def start(self, attempt: Attempt, rendezvous: str) -> None:
        """Starts them all; OSError if the interpreter or the folder is not there."""
        for local_rank in range(self._job.hosts[self._agent].slots):
            env = rank_env(self._job, self._agent, local_rank, attempt, rendezvous)
            self._start(self._job.first_rank(self._agent) + local_rank, env, attempt.number > 0)

    def start_again(self, rank: int, attempt: Attempt, rendezvous: str, joins: bool) -> None:
        """Starts one that has ended; OSError as for start()."""
        local_rank = rank - self._job.first_rank(self._agent)
        env = rank_env(self._job, self._agent, local_rank, attempt, rendezvous, joins)
        self._start(rank, env, is_restart=True)

    def _start(self, rank: int, env: dict[str, str], is_restart: bool) -> None:
        agent = os.getpid()
        process = subprocess.Popen(
            [sys.executable, *self._job.argv],
            cwd=self._job.cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a group of its own, to end it with its own children
            preexec_fn=lambda: die_with_parent(signal.SIGKILL, agent),
        )
        assert process.stdout is not None and process.stderr is not None
        out, err = (
            RankStream(os.dup(pipe.fileno()), sink, self._tag(rank), file, self._selector)
            for pipe, sink, file in zip(
                (process.stdout, process.stderr),
                self._sinks,
                self._files(rank, is_restart),
                strict=True,
            )
        )
        process.stdout.close()
        process.stderr.close()
        self._by_rank[rank] = Rank(rank, process, out, err)

    def _tag(self, rank: int) -> bytes:
        return f"[{rank}]: ".encode() if self._job.tag_output else b""

    def _files(self, rank: int, is_restart: bool) -> tuple[Path | None, Path | None]:
        """What is in them is of this job: restarts add to it."""
        if self._job.output_dir is None:
            return None, None
        folder = Path(self._job.cwd, self._job.output_dir, f"rank.{rank}")
        folder.mkdir(parents=True, exist_ok=True)
        files = folder / "stdout", folder / "stderr"
        if not is_restart:
            for file in files:
                file.unlink(missing_ok=True)
        return files

    @property
    def pids(self) -> set[int]:
        return {rank.pid for rank in self}

    def ended(self, pid: int, returncode: int) -> Rank | None:
        """Takes note of a reaped child; None if it is no rank."""
        rank = next((rank for rank in self.live if rank.pid == pid), None)
        if rank is not None:
            rank.returncode = rank.process.returncode = returncode
            rank.stdout.drain()
            rank.stderr.drain()
        return rank

    def end(self, sig: signal.Signals) -> None:
        """Asks the living to end; poll() makes them, GRACE_S later."""
        if not self.ending:
            self.ending = True
            self._kill_at = time.monotonic() + GRACE_S
            for rank in self.live:
                kill_group(rank.pid, sig)

    @property
    def deadline(self) -> float | None:
        """When poll() has something to do."""
        return self._kill_at

    def poll(self) -> None:
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            for rank in self.live:
                kill_group(rank.pid, signal.SIGKILL)
