"""The ranks of one host: started as plain python processes, reaped, and ended together.

Floor: launcher/agent. Thread: the agent's; the ranks' parent-death signal hangs on it.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.limits import give_users_descriptors, make_room
from rdmacoll.launcher.base.processes import die_with_parent, kill_group
from rdmacoll.launcher.base.sink import Sink

from .output import RankStream
from .rank_env import Attempt, rank_env
from .rank_files import NAMES, open_rank_files

GRACE_S = 5.0  # between the signal that asks a rank to end and the one that makes it


class StartError(OSError):
    """A rank cannot be started; the message says why."""

    def __init__(self, rank: int, why: str) -> None:
        super().__init__(f"cannot start rank {rank}: {why}")


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
        self.lost_output = False  # whether a file could not be written

    def __iter__(self) -> Iterator[Rank]:
        return iter(self._by_rank.values())

    @property
    def live(self) -> list[Rank]:
        return [rank for rank in self if rank.returncode is None]

    def start(self, attempt: Attempt, rendezvous: str) -> None:
        """Starts all ranks, or none if a file of theirs cannot be opened. OSError says why."""
        own = range(self._job.hosts[self._agent].slots)
        make_room(ranks=len(own))
        first, is_restart = self._job.first_rank(self._agent), attempt.number > 0
        files = [self._files(first + local_rank, is_restart) for local_rank in own]
        for local_rank in own:
            env = rank_env(self._job, self._agent, local_rank, attempt, rendezvous)
            self._start(first + local_rank, env, files[local_rank])

    def start_again(self, rank: int, attempt: Attempt, rendezvous: str, joins: bool) -> None:
        """Starts one that has ended; OSError as for start()."""
        self._by_rank[rank].stdout.close()
        self._by_rank[rank].stderr.close()
        local_rank = rank - self._job.first_rank(self._agent)
        env = rank_env(self._job, self._agent, local_rank, attempt, rendezvous, joins)
        self._start(rank, env, self._files(rank, is_restart=True))

    def _start(
        self, rank: int, env: dict[str, str], files: tuple[int, int] | tuple[None, None]
    ) -> None:
        process = self._spawn(rank, env)
        assert process.stdout is not None and process.stderr is not None
        out, err = (
            RankStream(
                os.dup(pipe.fileno()),
                sink,
                self._tag(rank),
                file,
                self._selector,
                partial(self._on_file_error, f"rank.{rank}/{name}"),
            )
            for pipe, sink, file, name in zip(
                (process.stdout, process.stderr), self._sinks, files, NAMES, strict=True
            )
        )
        process.stdout.close()
        process.stderr.close()
        self._by_rank[rank] = Rank(rank, process, out, err)

    def _spawn(self, rank: int, env: dict[str, str]) -> "subprocess.Popen[bytes]":
        agent = os.getpid()

        def prepare() -> None:
            die_with_parent(signal.SIGKILL, agent)
            give_users_descriptors()

        try:
            return subprocess.Popen(
                [sys.executable, *self._job.argv],
                cwd=self._job.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # a group of its own, to end it with its own children
                preexec_fn=prepare,
            )
        except BlockingIOError:
            raise StartError(rank, "no more processes may be started (ulimit -u)") from None
        except OSError as error:
            raise StartError(rank, str(error)) from None

    def _tag(self, rank: int) -> bytes:
        return f"[{rank}]: ".encode() if self._job.tag_output else b""

    def _files(self, rank: int, is_restart: bool) -> tuple[int, int] | tuple[None, None]:
        if self._job.output_dir is None:
            return None, None
        folder = Path(self._job.cwd, self._job.output_dir)
        try:
            return open_rank_files(folder, rank, is_restart)
        except OSError as error:
            raise StartError(rank, str(error)) from None

    def _on_file_error(self, file: str, error: OSError) -> None:
        self._sinks[1].say(
            f"{self._job.output_dir}/{file}: {error.strerror}; it gets no more of the rank's "
            "output (--output-filename), the job goes on"
        )
        self.lost_output = True

    def close(self) -> None:
        """Call it once the ranks have ended, and all that they have started."""
        for rank in self:
            rank.stdout.close()
            rank.stderr.close()

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
