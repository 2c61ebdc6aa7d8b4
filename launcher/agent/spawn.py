"""How ranks and helpers are started as new processes.

Floor: launcher/agent. Thread: the agent's; their parent-death signal hangs on it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.limits import give_users_descriptors
from rdmacoll.launcher.base.processes import die_with_parent

from .rank_env import shared_env

Envs = dict[int, dict[str, str]]  # ranks and their own variables
Cpus = frozenset[int]  # that a process may run on; empty: on all that the agent may


class StartError(OSError):
    """A rank or a helper cannot be started; the message says why."""

    def __init__(self, who: str, why: str) -> None:
        super().__init__(f"cannot start {who}: {why}")


@dataclass(frozen=True)
class Started:
    pid: int
    stdout: int  # the agent's end of its pipe
    stderr: int
    process: "subprocess.Popen[bytes] | None" = None


def spawn_all(job: Job, own: Envs, cpus: Callable[[int], Cpus]) -> Iterator[tuple[int, Started]]:
    """Starts them one by one, as they are asked for. StartError if one cannot be started."""
    shared, argv = shared_env(job), job.argv if job.is_command else [sys.executable, *job.argv]
    for rank, env in own.items():
        yield rank, spawn(f"rank {rank}", argv, job.cwd, {**shared, **env}, cpus(rank))


def spawn(
    who: str, argv: Sequence[str], cwd: str, env: dict[str, str], cpus: Cpus = frozenset()
) -> Started:
    """StartError if it cannot be started."""
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a group of its own, to end it with its own children
            preexec_fn=partial(prepare, os.getpid(), cpus),
        )
    except OSError as error:
        raise StartError(who, why_not(error)) from None
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        out, err = os.dup(process.stdout.fileno()), os.dup(process.stderr.fileno())
    return Started(process.pid, out, err, process)


def why_not(error: OSError) -> str:
    """Why a process could not be started."""
    is_limit = isinstance(error, BlockingIOError)
    return "no more processes may be started (ulimit -u)" if is_limit else str(error)


def prepare(agent: int, cpus: Cpus = frozenset()) -> None:
    """In the new process, before it becomes what it is to run."""
    die_with_parent(signal.SIGKILL, agent)
    give_users_descriptors()
    if cpus:
        os.sched_setaffinity(0, cpus)
