"""The agent of a host: it starts the ranks there and reports how they ended.

The agent of a job on one host is started by rdmarun and loads no MPI. Those of several hosts are
started by mpiexec, one per host, and talk to each other over MPI.
Floor: launcher/agent. Thread: the main one.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from rdmacoll.launcher.base.cause import Cause
from rdmacoll.launcher.base.comm import Alone, Comm
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
from rdmacoll.launcher.keys.key_holder import ask_for_key
from rdmacoll.launcher.keys.secret_file import SecretFileError, read_secret_file

from . import store
from .emergency import watch_signals
from .rank_env import Attempt, Master, master_address
from .shm_space import lacks_shm_space
from .subreaper import keep
from .supervisor import Supervisor
from .table import AgentsSilent

NO_TRUST = NotOfTheJob, SecretFileError
LIMITS = LimitError, BlockingIOError  # fork() raises the latter
# When agents distrust each other, all of them notice. The others wait for agent 0 to say so and to
# end them, so that the user reads one error.
AGENT_0_SPEAKS_S = 5.0


def main() -> None:
    """`agent HOSTS [RUN_ID [SECRET_FILE]]`: HOSTS are those of all agents, with commas between.

    Without RUN_ID this agent is the only one, and rdmarun has started it itself, so it needs no
    key. All agents end with the job's status, as mpiexec may return that of any.
    """
    status = _within_limits(lambda: keep(lambda: _within_limits(_run)))
    if status < 0:
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
    hosts = sys.argv[1].split(",")
    run_id, secret_file = [*sys.argv[2:], "", ""][:2]
    if len(hosts) == 1:
        try:
            key = _job_key(0, run_id, secret_file) if run_id else Key(b"", "")
            return _serve(Alone(), key, hosts)
        except NO_TRUST as error:
            _say(f"{_me()}: {error}")
            return 1
    if lacks := lacks_shm_space(socket.gethostname()):
        _say(lacks)
        return 1
    from . import (
        over_mpi,  # not at the top: the subreaper, which imports this file, must load no MPI
    )

    comm = over_mpi.OverMpi()
    if comm.size != len(hosts):
        _say(
            f"mpiexec started {len(hosts)} agents, but they see an MPI world of {comm.size}: "
            "mpiexec and mpi4py's library are of different MPIs "
            f"({over_mpi.library()}); use the mpiexec of that library"
        )
        return 1
    over_mpi.unlink_segments()
    try:
        status = _serve(comm, _job_key(comm.rank, run_id, secret_file), hosts)
    except Exception as error:
        # First of all: mpiexec, which reads what is said, may be gone, and abort() leaves no time.
        kill_descendants()
        _say_why(error, hosts[comm.rank])
        # The other agents are in a call that needs this one. To leave MPI would need them in turn.
        over_mpi.abort()
    over_mpi.leave()
    return status


def _say_why(error: Exception, host: str) -> None:
    if isinstance(error, (*NO_TRUST, AgentsSilent)):
        _say(f"host {host}: {error}")
    elif isinstance(error, LIMITS):
        _say_limit(error)
    else:
        sys.excepthook(type(error), error, error.__traceback__)


def _job_key(agent: int, run_id: str, secret_file: str) -> Key:
    if secret_file:
        return Key(read_secret_file(secret_file), run_id)
    try:
        return Key(ask_for_key(run_id, agent), run_id)
    except OSError as error:
        raise NotOfTheJob(
            f"rdmarun has left no key for the agent here ({error}): ssh and mpiexec have reached "
            "other machines or users, or namespaces that share no sockets; use "
            "RDMACOLL_SECRET_FILE (docs/SECURITY.md)"
        ) from None


def _trust(comm: Comm, key: Key, hosts: list[str]) -> Trust:
    try:
        return establish_trust(comm, key, hosts)
    except NotOfTheJob:
        if comm.rank != 0:
            time.sleep(AGENT_0_SPEAKS_S)
        raise


def _serve(comm: Comm, key: Key, hosts: list[str]) -> int:
    """Gets the job, runs it, and returns its status."""
    trust = _trust(comm, key, hosts)
    sealed = comm.from_first(_ask_for_line(key) if comm.rank == 0 else b"")
    job = Job.from_text(key.unseal("job", sealed))
    woken = watch_signals()
    cause, restart, lost = _attempt(comm, trust, job, 0, woken)
    while restart is not None:
        cause, restart, lost_too = _attempt(comm, trust, job, restart, woken)
        lost = lost or lost_too
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # no ranks are left to be ended first
    return exit_status(cause) or (os.EX_IOERR if lost else 0)


def _attempt(
    comm: Comm, trust: Trust, job: Job, number: int, woken: int
) -> tuple[Cause, int | None, bool]:
    """Starts all ranks and waits until they have ended. `number` is how many restarts came before.

    Returns why they were ended, the number of the next attempt if there is to be one, and whether
    output of this host's ranks is lost.
    """
    attempt, listener = _agree(comm, trust, job, number)
    supervisor = Supervisor(comm, job, attempt)
    if comm.rank == 0:
        supervisor.watch_control(0)
    supervisor.start(listener, woken)
    supervisor.run()
    restart = _next_attempt(comm, job, supervisor)
    failures = unpack_failures(comm.from_all(pack_failures(supervisor.losses.failures)))
    if comm.rank == 0 and supervisor.cause.why:
        said = describe(supervisor.cause, job, supervisor.late)
        for line in [said] if said else failure_lines(failures):
            supervisor.err.say(line)
        if restart is not None:
            said = f"restart {restart} of {job.max_restarts}"
            supervisor.err.say(f"starting all ranks again ({said})")
    supervisor.close()
    return supervisor.cause, restart, supervisor.lost_output


def _next_attempt(comm: Comm, job: Job, ended: Supervisor) -> int | None:
    """Its number, the same on all agents; None if the job is over."""
    # A signal may have come too late to be the cause. So agent 0 says here whether there was one.
    stopped = comm.from_first(b"%d" % ended.stopped) == b"1"
    may_help = ended.cause.of_a_rank and ended.losses.restarts < job.max_restarts
    return ended.losses.restarts + 1 if may_help and not stopped else None


def _agree(comm: Comm, trust: Trust, job: Job, number: int) -> tuple[Attempt, socket.socket | None]:
    """Agent 0 opens the store's port and tells the others. Each derives the ranks' secret itself.

    The secret is in the memory of the agents and of the ranks that ask for it, and nowhere else:
    not in the environment, not on a command line, and on no network.
    """
    listener, said = None, b""
    secret = trust.secret(f"ranks of start {number}")
    if comm.rank == 0:
        listener = store.listen(job.all_local)
        address = master_address(job, socket.gethostname())
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
