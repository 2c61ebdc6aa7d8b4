"""The servers of one host (--servers): started before its ranks, started again when they are lost,
and ended once the ranks of all hosts have.

Floor: launcher/agent. Thread: the agent's; the servers' parent-death signal hangs on it.
"""

import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Final

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.processes import kill_group
from rdmacoll.launcher.base.report import server_lines

from rdmacoll.base.own_module import own_module

from .outlets import Outlets
from .output import Stream
from .rank_env import Attempt, server_env, shared_env
from .spawn import spawn

SERVER: Final = own_module("rdmacoll.ps.serve")  # what each runs


@dataclass
class Server:
    number: int
    restarts: int  # before this one
    pid: int
    process: subprocess.Popen[bytes] | None
    stdout: Stream
    stderr: Stream
    returncode: int | None = None  # negative: the signal that killed it


class Servers:
    """All servers of this host, by number. They end with one start of all ranks."""

    def __init__(self, job: Job, agent: int, attempt: Attempt, outlets: Outlets) -> None:
        self._job = job
        self._host = job.hosts[agent].name
        self._numbers = job.servers_of(agent)
        self._attempt = attempt
        self._outlets = outlets
        self._by_number: dict[int, Server] = {}
        self._rendezvous = ""
        self._first_start = 0
        self._due: list[Server] = []  # to be started again
        self._grace_s: float | None = None  # once they are told to end
        self._kill_at: float | None = None

    def start(self, rendezvous: str, times_lost: int) -> None:
        """Starts them all. StartError if one cannot be started.

        times_lost: how often this host was, in this start of all ranks.
        """
        self._rendezvous = rendezvous
        # Nobody knows how often an agent that is lost had started them, but that it did no more.
        self._first_start = times_lost * (self._job.server_restarts + 1)
        for number in self._numbers:
            self._start(number, 0)
        if self._job.verbose and self._numbers:
            pids = ", ".join(f"{one.number} (pid {one.pid})" for one in self.live)
            self._outlets.say(f"host {self._host}: servers {pids}")

    def _start(self, number: int, restarts: int) -> None:
        who, start = f"server {number}", self._first_start + restarts
        own = server_env(self._job, number, start, self._attempt, self._rendezvous)
        files = self._outlets.open_files(who, is_restart=start + self._attempt.number > 0)
        started = spawn(who, SERVER, self._job.cwd, shared_env(self._job) | own)
        out, err = self._outlets.connect(who, started, files)
        self._by_number[number] = Server(number, restarts, started.pid, started.process, out, err)

    @property
    def live(self) -> list[Server]:
        return [one for one in self._by_number.values() if one.returncode is None]

    @property
    def pids(self) -> set[int]:
        return {one.pid for one in self.live}

    def server_of(self, pid: int) -> int | None:
        """Which server has this process id; None if none that lives has it."""
        return next((one.number for one in self.live if one.pid == pid), None)

    def ended(self, pid: int, returncode: int, may_restart: bool) -> bool:
        """Takes note of a reaped child; False if it is no server."""
        server = next((one for one in self.live if one.pid == pid), None)
        if server is None:
            return False
        server.returncode = returncode
        if server.process is not None:
            server.process.returncode = returncode
        server.stdout.drain()
        server.stderr.drain()
        if self._grace_s is None:
            self._say_end(server)
            if may_restart:
                self._answer_loss(server)
        elif returncode not in self._as_told:
            self._say_end(server)
        return True

    @property
    def _as_told(self) -> set[int]:
        """How a server may end that is to end."""
        was_made_to = self._kill_at is None
        return {0, -signal.SIGTERM} | ({-signal.SIGKILL} if was_made_to else set())

    def _say_end(self, server: Server) -> None:
        assert server.returncode is not None
        tail = list(server.stderr.tail)
        for line in server_lines(server.number, self._host, server.pid, server.returncode, tail):
            self._outlets.say(line)

    def _answer_loss(self, server: Server) -> None:
        limit = self._job.server_restarts
        if server.restarts < limit:
            restart = f"restart {server.restarts + 1} of {limit}"
            self._outlets.say(f"starting server {server.number} again ({restart})")
            self._due.append(server)
        else:
            has = f"has had its {limit} restarts" if limit else "is not started again"
            self._outlets.say(
                f"server {server.number} {has} (--server-restarts {limit}); the job goes on "
                "without it"
            )

    def end(self, grace_s: float) -> None:
        """Asks the living to end; poll() makes them, so much later."""
        self._due.clear()
        self._grace_s, self._kill_at = grace_s, time.monotonic() + grace_s
        for server in self.live:
            kill_group(server.pid, signal.SIGTERM)

    @property
    def deadline(self) -> float | None:
        """When poll() has something to do."""
        return self._kill_at

    def poll(self) -> None:
        """StartError if one cannot be started again."""
        due, self._due = self._due, []
        for server in due:
            server.stdout.close()
            server.stderr.close()
            self._start(server.number, server.restarts + 1)
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            for server in self.live:
                self._outlets.say(
                    f"server {server.number} on {self._host} (pid {server.pid}) has not ended "
                    f"{self._grace_s:g} s after SIGTERM, and is killed"
                )
                kill_group(server.pid, signal.SIGKILL)

    def close(self) -> None:
        """Call it once they have ended, and all that they have started."""
        for server in self._by_number.values():
            server.stdout.close()
            server.stderr.close()
