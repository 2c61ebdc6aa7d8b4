"""The agent of a host: it starts the ranks there and reports how they ended.

The agent of a job on one host is started by rdmarun and loads no MPI. Those of several hosts are
started by an mpiexec for each, and talk to agent 0 (launcher/meet, launcher/star).
Floor: launcher/agent. Thread: the main one.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from rdmacoll.launcher.base.comm import Alone, Comm, Gatherer
from rdmacoll.launcher.base.hosts import master_address
from rdmacoll.launcher.base.job import PIECE_BYTES, Job
from rdmacoll.launcher.base.limits import LimitError
from rdmacoll.launcher.base.processes import kill_descendants
from rdmacoll.launcher.base.report import (
    describe,
    exit_status,
    failure_lines,
    pack_failures,
    signal_name,
    unpack_failures,
)
from rdmacoll.launcher.keys.key import Key, NotOfTheJob, Trust, establish_trust
from rdmacoll.launcher.keys.secret_file import SecretFileError
from rdmacoll.launcher.meet.joining import CannotJoin, Seat, job_key, join, reach_hub
from rdmacoll.launcher.star.hub import AgentLost, Hub
from rdmacoll.launcher.star.interfaces import InterfaceError
from rdmacoll.launcher.star.port import PortError
from rdmacoll.launcher.star.spoke import HubLost, Spoke

from . import store
from .emergency import watch_signals
from .missed import Missed, ranks_secret
from .rank_env import Attempt, Master
from .subreaper import keep
from .supervisor import Supervisor

NO_TRUST = NotOfTheJob, SecretFileError
LIMITS = LimitError, BlockingIOError  # fork() raises the latter


def main() -> None:
    """`agent HOSTS [RUN_ID AGENT mpi|star|back [SECRET_FILE]]`: HOSTS are those of all agents, with
    commas between, and AGENT is which of them this one is; `back`: it was lost before.

    Without RUN_ID this agent is the only one, and rdmarun has started it itself, so it needs no
    key.
    """
    status = _within_limits(lambda: keep(lambda: _within_limits(_run)))
    if status < 0:
        if status != -signal.SIGTERM:  # which is asked for
            _say(f"{_me()} was killed by {signal_name(-status)}; its ranks were ended")
        status = 128 - status
    os._exit(status)


def _within_limits(run: Callable[[], int]) -> int:
    """What run() returns. If it meets a limit of the user's, this says so and returns 1."""
    try:
        return run()
    except LIMITS as error:
        _say_limit(error)
        return 1


def _say_limit(error: OSError) -> None:
    is_ours = isinstance(error, LimitError)
    _say(f"{_me()}: {error if is_ours else 'no more processes may be started (ulimit -u)'}")


def _run() -> int:
    seat = Seat.from_arguments(sys.argv[1:])
    try:
        key = job_key(seat)
        if seat.comes_back:
            return _come_back(reach_hub(seat, key), key)
        if len(seat.hosts) > 1:
            star, cards = join(seat, key)
            status = _serve(star, cards, key, seat.hosts)
            star.leave()
            return status
        alone = Alone()
        return _serve(alone, alone, key, seat.hosts)
    except HubLost:  # which rdmarun says, where anybody hears it
        kill_descendants()
    except Exception as error:
        # First of all: mpiexec, which reads what is said, may be gone.
        kill_descendants()
        _say_why(error, seat)
    return 1


def _say_why(error: Exception, seat: Seat) -> None:
    if isinstance(error, AgentLost):
        _say(f"host {seat.hosts[error.agent]} is lost: {error}")
    elif isinstance(error, (*NO_TRUST, CannotJoin, InterfaceError, PortError)):
        _say(f"host {seat.host}: {error}" if len(seat.hosts) > 1 else f"{_me()}: {error}")
    elif isinstance(error, LIMITS):
        _say_limit(error)
    else:
        sys.excepthook(type(error), error, error.__traceback__)


def _serve(comm: Comm, cards: Gatherer, key: Key, hosts: list[str]) -> int:
    """Gets the job, runs it, and returns its status."""
    trust = establish_trust(cards, key, hosts)
    sealed = comm.from_first(_ask_for_line(key) if comm.rank == 0 else b"")
    return _run_job(comm, cards, trust, Job.from_text(key.unseal("job", sealed)), None)


def _come_back(spoke: Spoke, key: Key) -> int:
    """The same in the place of an agent that was lost."""
    missed = Missed.from_text(spoke.wait_for_welcome(), key)
    return _run_job(spoke, spoke, missed.trust, missed.job, missed)


def _run_job(comm: Comm, cards: Gatherer, trust: Trust, job: Job, missed: Missed | None) -> int:
    woken = watch_signals()
    if isinstance(comm, Hub) and not job.elastic:
        comm.admit_no_more()
    number: int | None = 0  # of restarts before
    lost_output = False
    while number is not None:
        attempt, listener = (
            _agree(comm, trust, job, number) if missed is None else (missed.attempt, None)
        )
        supervisor = Supervisor(comm, cards, trust, job, attempt)
        if comm.rank == 0:
            supervisor.watch_control(0)
        supervisor.start(listener, woken, missed)
        supervisor.run()
        number = _report(comm, job, supervisor)
        lost_output = lost_output or supervisor.lost_output
        cards, missed = comm, None
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # no ranks are left to be ended first
    return exit_status(supervisor.cause) or (os.EX_IOERR if lost_output else 0)


def _report(comm: Comm, job: Job, ended: Supervisor) -> int | None:
    """Says why the ranks were ended. The number of the next start of all ranks, if there is to be
    one."""
    restart = _next_attempt(comm, job, ended)
    failures = unpack_failures(comm.from_all(pack_failures(ended.losses.failures)))
    if comm.rank == 0 and ended.cause.why:
        if restart is None:  # else the next supervisor hears of them, and ends the job
            ended.hear_late_losses({failure.rank for failure in failures})
        said = describe(ended.cause, job, ended.late)
        for line in [said] if said else failure_lines(failures):
            ended.err.say(line)
        if restart is not None:
            said = f"restart {restart} of {job.max_restarts}"
            ended.err.say(f"starting all ranks again ({said})")
    ended.close()
    return restart


def _next_attempt(comm: Comm, job: Job, ended: Supervisor) -> int | None:
    """Its number, the same on all agents; None if the job is over."""
    # A signal, or the loss of a host, may have come too late to be the cause. So agent 0 says here
    # whether there was one.
    over = comm.from_first(b"%d" % (ended.stopped or ended.is_short)) == b"1"
    may_help = ended.cause.of_a_rank and ended.losses.restarts < job.max_restarts
    return ended.losses.restarts + 1 if may_help and not over else None


def _agree(comm: Comm, trust: Trust, job: Job, number: int) -> tuple[Attempt, socket.socket | None]:
    """Agent 0 opens the store's port and tells the others. Each derives the ranks' secret itself.

    The secret is in the memory of the agents and of the ranks that ask for it, and nowhere else:
    not in the environment, not on a command line, and on no network.
    """
    listener, said = None, b""
    secret = ranks_secret(trust, number)
    if comm.rank == 0:
        listener = store.listen(job.all_local)
        address = master_address(job.hosts, socket.gethostname())
        attempt = Attempt(number, Master(address, listener.getsockname()[1]), secret)
        said = trust.seal("start", attempt.to_text())
    told = trust.unseal("start", comm.from_first(said))
    attempt = Attempt.from_text(told, secret)
    if attempt.number != number:
        raise NotOfTheJob("somebody repeats what agent 0 said for another start of the ranks")
    return attempt, listener


def _me() -> str:
    return f"the agent on {socket.gethostname()}"


def _say(text: str) -> None:
    with suppress(BrokenPipeError):  # whoever read it is gone
        print(f"rdmarun: {text}", file=sys.stderr, flush=True)


def _ask_for_line(key: Key) -> bytes:
    """The first line of the input; what follows stays unread, for the supervisor."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) % PIECE_BYTES == 0:
            os.write(1, key.ask_line)
        data = os.read(0, PIECE_BYTES)
        if not data:
            raise EOFError("rdmarun ended before it had said what to start")
        line += data
    os.write(1, key.ask_line)
    return bytes(line[:-1])
