"""The helpers of one host, which run beside its ranks: servers (--servers), and the mount of their
files (--mount). They are started before the ranks, started again when they are lost, and ended once
the ranks of all hosts have.

Floor: launcher/agent. Thread: the agent's; the helpers' parent-death signal hangs on it.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.processes import is_ending, kill_group
from rdmacoll.launcher.base.report import helper_lines

from rdmacoll.base.agent_protocol import MOUNT
from rdmacoll.base.mount_folder import is_mount_of_ours, is_mounted, make_folder
from rdmacoll.base.own_module import own_module

from .outlets import Outlets
from .output import Stream
from .rank_env import Attempt, mount_env, server_env, shared_env
from .spawn import StartError, spawn

SERVER: Final = own_module("rdmacoll.ps.serve")
COMMAND: Final = own_module("rdmacoll.__main__")

Env = Callable[[Job, int, Attempt, str], dict[str, str]]  # of a start, at a rendezvous


@dataclass(frozen=True)
class Role:
    who: str  # "server 0", as people call it, and MOUNT
    command: Sequence[str]
    env: Env
    most_restarts: int | None  # None: as often as it takes

    @property
    def is_mount(self) -> bool:
        """Ranks wait for it, and it needs servers."""
        return self.who == MOUNT


@dataclass
class Helper:
    role: Role
    restarts: int  # before this one
    pid: int
    process: subprocess.Popen[bytes] | None
    stdout: Stream
    stderr: Stream
    is_there: bool = False  # the mount has said so
    is_told: bool = False  # to end
    returncode: int | None = None  # negative: the signal that killed it


class Helpers:
    """All helpers of this host. They end with one start of all ranks."""

    def __init__(self, job: Job, agent: int, attempt: Attempt, outlets: Outlets) -> None:
        self._job = job
        self._host = job.hosts[agent].name
        self._roles = _roles_of(job, agent)
        self._attempt = attempt
        self._outlets = outlets
        self._by_who: dict[str, Helper] = {}
        self._rendezvous = ""
        self._times_lost = 0
        self._mount_at: str | None = None
        self._due: list[Helper] = []  # to be started again
        self._error: StartError | None = None
        self._grace_s: float | None = None  # once they are told to end
        self._kill_at: float | None = None

    @property
    def count(self) -> int:
        return len(self._roles)

    def start(self, rendezvous: str, times_lost: int) -> None:
        """Starts them all. StartError if one cannot be started.

        times_lost: how often this host was, in this start of all ranks.
        """
        self._rendezvous, self._times_lost = rendezvous, times_lost
        _prepare_mount(self._job)
        if self._job.mount is not None:
            self._mount_at = os.path.realpath(self._job.mount)
        for role in self._roles:
            self._start(role, 0)
        if self._job.verbose and self._roles:
            pids = ", ".join(f"{one.role.who} (pid {one.pid})" for one in self.live)
            self._outlets.say(f"host {self._host}: {pids}")

    def _start(self, role: Role, restarts: int) -> None:
        # Nobody knows how often an agent that is lost had started one, but that it did no more.
        start = self._times_lost * ((role.most_restarts or 0) + 1) + restarts
        own = role.env(self._job, start, self._attempt, self._rendezvous)
        files = self._outlets.open_files(role.who, is_restart=start + self._attempt.number > 0)
        started = spawn(role.who, role.command, self._job.cwd, shared_env(self._job) | own)
        out, err = self._outlets.connect(role.who, started, files)
        self._by_who[role.who] = Helper(role, restarts, started.pid, started.process, out, err)

    @property
    def live(self) -> list[Helper]:
        return [one for one in self._by_who.values() if one.returncode is None]

    @property
    def pids(self) -> set[int]:
        return {one.pid for one in self.live}

    def helper_of(self, pid: int) -> str | None:
        """Which helper has this process id; None if none that lives has it."""
        return next((one.role.who for one in self.live if one.pid == pid), None)

    def note_there(self, pid: int) -> None:
        """It has said that it is there."""
        for one in self.live:
            one.is_there = one.is_there or one.pid == pid

    @property
    def ranks_may_start(self) -> bool:
        """Whether what they wait for is there."""
        waited_for = [one for one in self._by_who.values() if one.role.is_mount]
        if not all(one.is_there and one.returncode is None for one in waited_for):
            return False
        # A rank may end as the mount's process is lost, before that is known here.
        is_lost = any(is_ending(one.pid) for one in waited_for)
        return self._mount_at is None or (not is_lost and is_mounted(self._mount_at))

    def ended(self, pid: int, returncode: int, may_restart: bool) -> bool:
        """Takes note of a reaped child; False if it is no helper."""
        helper = next((one for one in self.live if one.pid == pid), None)
        if helper is None:
            return False
        helper.returncode = returncode
        if helper.process is not None:
            helper.process.returncode = returncode
        helper.stdout.drain()
        helper.stderr.drain()
        if self._grace_s is None:
            self._say_end(helper)
            if may_restart:
                self._answer_loss(helper)
        elif returncode not in self._as_told:
            self._say_end(helper)
        return True

    @property
    def _as_told(self) -> set[int]:
        """How a helper may end that is to end."""
        was_made_to = self._kill_at is None
        return {0, -signal.SIGTERM} | ({-signal.SIGKILL} if was_made_to else set())

    def _say_end(self, helper: Helper) -> None:
        assert helper.returncode is not None
        who, tail = helper.role.who, list(helper.stderr.tail)
        for line in helper_lines(who, self._host, helper.pid, helper.returncode, tail):
            self._outlets.say(line)

    def _answer_loss(self, helper: Helper) -> None:
        who, limit = helper.role.who, helper.role.most_restarts
        if helper.role.is_mount and not helper.is_there:
            self._error = StartError(who, "it has ended before it was there")
        elif limit is None:
            self._outlets.say(f"starting {who} again")
            self._due.append(helper)
        elif helper.restarts < limit:
            self._outlets.say(f"starting {who} again (restart {helper.restarts + 1} of {limit})")
            self._due.append(helper)
        else:
            has = f"has had its {limit} restarts" if limit else "is not started again"
            self._outlets.say(
                f"{who} {has} (--server-restarts {limit}); the job goes on without it"
            )

    def end(self, grace_s: float) -> None:
        """Asks the mount to end, and the servers, which it needs, once it has. poll() does so, and
        makes those that have not ended so much later."""
        self._due.clear()
        self._error, self._grace_s = None, grace_s
        self._go_on_ending(grace_s)

    def _go_on_ending(self, grace_s: float) -> None:
        told = [one for one in self.live if one.is_told]
        if not told:
            self._kill_at = time.monotonic() + grace_s
            for helper in [one for one in self.live if one.role.is_mount] or self.live:
                helper.is_told = True
                kill_group(helper.pid, signal.SIGTERM)
        elif self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            for helper in told:
                self._outlets.say(
                    f"{helper.role.who} on {self._host} (pid {helper.pid}) has not ended "
                    f"{grace_s:g} s after SIGTERM, and is killed"
                )
                kill_group(helper.pid, signal.SIGKILL)

    @property
    def deadline(self) -> float | None:
        """When poll() has something to do."""
        return self._kill_at

    def poll(self) -> None:
        """StartError if one cannot be started again, or if the mount cannot be made."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        due, self._due = self._due, []
        for helper in due:
            helper.stdout.close()
            helper.stderr.close()
            self._start(helper.role, helper.restarts + 1)
        if self._grace_s is not None:
            self._go_on_ending(self._grace_s)

    def close(self) -> None:
        """Call it once they have ended, and all that they have started."""
        for helper in self._by_who.values():
            helper.stdout.close()
            helper.stderr.close()


def _roles_of(job: Job, agent: int) -> list[Role]:
    roles = [
        Role(f"server {one}", SERVER, partial(server_env, server=one), job.server_restarts)
        for one in job.servers_of(agent)
    ]
    if job.mount is not None:
        roles.append(Role(MOUNT, [*COMMAND, "mount", job.mount], mount_env, None))
    return roles


def _prepare_mount(job: Job) -> None:
    """Makes the folder. StartError where nothing can be mounted there. Another agent of the job may
    have done it: what is a mount of ours is looked at by the process that is to make it."""
    try:
        if job.mount is not None and not is_mount_of_ours(job.mount):
            make_folder(job.mount)
    except (OSError, ValueError) as error:
        raise StartError(MOUNT, str(error)) from None
