"""The ranks of one host: started as plain python processes or forked, reaped, and ended together.

Floor: launcher/agent. Thread: the agent's; the ranks' parent-death signal hangs on it.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.processes import kill_group
from rdmacoll.launcher.bind.binding import bind_ranks
from rdmacoll.launcher.bind.topology import read_nodes

from .helpers import Helpers
from .outlets import Outlets
from .output import Stream
from .preload import Preload
from .rank_env import Attempt, own_env
from .spawn import Cpus, Envs, Started, spawn_all

LOOK_S = 0.2  # between looks whether the mount is there
GRACE_S = 5.0  # between the signal that asks a rank to end and the one that makes it


@dataclass
class Rank:
    rank: int
    pid: int
    process: subprocess.Popen[bytes] | None  # None where it was forked (--preload)
    stdout: Stream
    stderr: Stream
    returncode: int | None = None  # negative: the signal that killed it


class Ranks:
    """All ranks of this host, by rank."""

    def __init__(
        self,
        job: Job,
        agent: int,
        selector: selectors.BaseSelector,
        outlets: Outlets,
        helpers: Helpers,
    ) -> None:
        nodes = [] if job.bind == "none" else read_nodes(os.sched_getaffinity(0))
        self._binding = bind_ranks(job, agent, nodes)
        self._job = replace(job, env=self._binding.env | job.env)
        self._agent = agent
        self._outlets = outlets
        self._helpers = helpers
        self._by_rank: dict[int, Rank] = {}
        self._preload = Preload(self._job, selector) if job.preload else None
        self._due: list[tuple[Envs, bool]] = []  # until they may start
        self._look_at: float | None = None  # again, whether the mount is there
        self._kill_at: float | None = None
        self.ending = False

    def __iter__(self) -> Iterator[Rank]:
        return iter(self._by_rank.values())

    @property
    def live(self) -> list[Rank]:
        return [rank for rank in self if rank.returncode is None]

    @property
    def unended(self) -> int:
        """How many live or are yet to be started."""
        return len(self.live) + sum(len(own) for own, _ in self._due)

    def start(self, attempt: Attempt, rendezvous: str, joins: bool = False) -> None:
        """Starts all ranks, or none if a file of theirs cannot be opened. OSError says why.

        Where they wait for the mount, or for modules to be imported, poll() starts them.
        """
        if self._binding.is_short or (self._job.verbose and self._binding.said):
            self._outlets.say(self._binding.said)
        slots = range(self._job.hosts[self._agent].slots)
        first = self._job.first_rank(self._agent)
        own = {
            first + local_rank: own_env(
                self._job, self._agent, local_rank, attempt, rendezvous, joins
            )
            for local_rank in slots
        }
        self._start(own, is_restart=attempt.number > 0)

    def start_again(self, rank: int, attempt: Attempt, rendezvous: str, joins: bool) -> None:
        """Starts one that has ended; OSError as for start()."""
        before = self._by_rank.pop(rank)
        before.stdout.close()
        before.stderr.close()
        local_rank = rank - self._job.first_rank(self._agent)
        own = own_env(self._job, self._agent, local_rank, attempt, rendezvous, joins)
        self._start({rank: own}, is_restart=True)

    def _start(self, own: Envs, is_restart: bool) -> None:
        self._due.append((own, is_restart))
        self._start_due()

    def _start_due(self) -> None:
        preload = self._preload
        try:
            if preload is not None and not preload.ready:
                preload.begin()  # also where it was killed since, while ranks waited for the mount
                return
        except OSError:
            self._due.clear()
            raise
        if not self._helpers.ranks_may_start:
            self._look_at = time.monotonic() + LOOK_S
            return
        due, self._due = self._due, []
        for own, is_restart in due:
            if preload is None:
                started = spawn_all(self._job, own, self._cpus_of)
            else:
                started = preload.fork(own, self._cpus_of)
            self._add_all(own, started, is_restart)
        if preload is not None and not self._job.elastic:  # it is not needed again
            preload.close()

    def _cpus_of(self, rank: int) -> Cpus:
        return self._binding.of(rank - self._job.first_rank(self._agent))

    def _add_all(self, own: Envs, started: Iterable[tuple[int, Started]], is_restart: bool) -> None:
        files = {rank: self._outlets.open_files(f"rank {rank}", is_restart) for rank in own}
        for rank, process in started:
            shown = self._job.shown
            is_shown = shown is None or rank - self._job.first_rank(self._agent) in shown
            out, err = self._outlets.connect(f"rank {rank}", process, files[rank], is_shown)
            self._by_rank[rank] = Rank(rank, process.pid, process.process, out, err)
        if self._job.verbose:
            pids = ", ".join(f"{rank} (pid {self._by_rank[rank].pid})" for rank in own)
            self._outlets.say(f"host {self._job.hosts[self._agent].name}: ranks {pids}")

    def close(self) -> None:
        """Call it once the ranks have ended, and all that they have started."""
        for rank in self:
            rank.stdout.close()
            rank.stderr.close()
        if self._preload is not None:
            self._preload.close()

    @property
    def pids(self) -> set[int]:
        return {rank.pid for rank in self}

    def live_pids(self) -> dict[int, int]:
        """By rank."""
        return {rank.rank: rank.pid for rank in self.live}

    def rank_of(self, pid: int) -> int | None:
        """Which rank has this process id; None if none that lives has it."""
        return next((rank.rank for rank in self.live if rank.pid == pid), None)

    def ended(self, pid: int, returncode: int) -> Rank | None:
        """Takes note of a reaped child; None if it is no rank."""
        rank = next((rank for rank in self.live if rank.pid == pid), None)
        if rank is not None:
            rank.returncode = returncode
            if rank.process is not None:
                rank.process.returncode = returncode
            rank.stdout.drain()
            rank.stderr.drain()
        elif self._preload is not None:
            self._preload.ended(pid, returncode)
        return rank

    def end(self, sig: signal.Signals, grace_s: float) -> None:
        """Asks the living to end; poll() makes them, so much later."""
        if not self.ending:
            self.ending = True
            self._due.clear()
            self._kill_at = time.monotonic() + grace_s
            for rank in self.live:
                kill_group(rank.pid, sig)

    @property
    def deadline(self) -> float | None:
        """When poll() has something to do."""
        deadlines = [self._kill_at]
        if self._due:
            deadlines.append(self._look_at)
            if self._preload is not None:
                deadlines.append(self._preload.deadline)
        return min((at for at in deadlines if at is not None), default=None)

    def poll(self) -> None:
        """OSError as for start()."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            for rank in self.live:
                kill_group(rank.pid, signal.SIGKILL)
        if self._due:
            self._start_due()
