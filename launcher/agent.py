"""The agent of a host: rdmarun starts it where there is no other, else mpiexec, once per host.

Only where there are others does it load MPI.
Floor: launcher. Thread: the main one.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable

from . import store
from .cause import Cause
from .comm import Alone, Comm
from .emergency import watch_signals
from .job import PIECE_BYTES, Job
from .keeper import keep
from .key import Key, NotOfTheJob, Trust, establish_trust
from .key_holder import ask_for_key
from .limits import LimitError
from .rank_env import Attempt, Master, master_address
from .report import describe, exit_status, failure_lines, pack_failures, unpack_failures
from .secret_file import SecretFileError, read_secret_file
from .shm_space import lacks_shm_space
from .supervisor import Supervisor

NO_TRUST = NotOfTheJob, SecretFileError
AGENT_0_SPEAKS_S = 5.0  # of two that distrust each other only this one is to say so, and ends both


def main() -> None:
    """`agent HOSTS [RUN_ID [SECRET_FILE]]`: one for each of these. All end with the job's status:
    mpiexec returns that of any. Without RUN_ID there is no mpiexec, and no key to ask for."""
    status = _within_limits(lambda: keep(lambda: _within_limits(_run)))
    if status < 0:
        _say(f"{_me()} was killed by {signal.Signals(-status).name}; its ranks were ended")
        status = 128 - status
    os._exit(status)


def _within_limits(run: Callable[[], int]) -> int:
    try:
        return run()
    except LimitError as error:
        _say(f"{_me()}: {error}")
    except BlockingIOError:  # as fork() has it
        _say(f"{_me()}: no more processes may be started (ulimit -u)")
    return 1


def _run() -> int:
    hosts, run_id, secret_file = sys.argv[1].split(","), *[*sys.argv[2:], "", ""][:2]
    if not run_id:
        return _serve(Alone(), Key(b"", ""), hosts)
    if len(hosts) == 1:
        try:
            return _serve(Alone(), _job_key(0, run_id, secret_file), hosts)
        except NO_TRUST as error:
            _say(f"{_me()}: {error}")
            return 1
    if lacks := lacks_shm_space(socket.gethostname()):
        _say(lacks)
        return 1
    from . import over_mpi  # here, not above: the keeper shall have no MPI

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
    except NO_TRUST as error:
        _say(f"host {hosts[comm.rank]}: {error}")
        over_mpi.abort()  # who is not of the job would not take leave with us
    over_mpi.leave()
    return status


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
    """From the job to its status."""
    trust = _trust(comm, key, hosts)
    sealed = comm.from_first(_ask_for_line(key) if comm.rank == 0 else b"")
    job = Job.from_text(key.unseal("job", sealed))
    woken = watch_signals()
    cause, restarts, lost = _attempt(comm, trust, job, 0, woken)
    while cause.of_a_rank and restarts < job.max_restarts:
        cause, restarts, lost_too = _attempt(comm, trust, job, restarts + 1, woken)
        lost = lost or lost_too
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # no ranks are left to be ended first
    return exit_status(cause) or (os.EX_IOERR if lost else 0)


def _attempt(
    comm: Comm, trust: Trust, job: Job, number: int, woken: int
) -> tuple[Cause, int, bool]:
    """Starts all ranks, and returns why they were ended, when they have.

    The numbers are restarts: so many before this one, and up to its end. And whether output of
    this host's ranks is lost.
    """
    attempt, listener = _agree(comm, trust, job, number)
    supervisor = Supervisor(comm, job, attempt)
    if comm.rank == 0:
        supervisor.watch_control(0)
    supervisor.start(listener, woken)
    supervisor.run()
    restarts = supervisor.losses.restarts
    failures = unpack_failures(comm.from_all(pack_failures(supervisor.losses.failures)))
    if comm.rank == 0 and supervisor.cause.why:
        said = describe(supervisor.cause, job, supervisor.late)
        for line in [said] if said else failure_lines(failures):
            supervisor.err.say(line)
        if supervisor.cause.of_a_rank and restarts < job.max_restarts:
            number = restarts + 1
            supervisor.err.say(f"starting all ranks again (restart {number} of {job.max_restarts})")
    supervisor.close()
    return supervisor.cause, restarts, supervisor.lost_output


def _agree(comm: Comm, trust: Trust, job: Job, number: int) -> tuple[Attempt, socket.socket | None]:
    """Agent 0 opens the store's port; then all know. Each derives the ranks' secret by itself.

    That is in the memory of the agents and of the ranks that ask for it, and nowhere else: not in
    the environment, not on a command line, and on no network.
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
        raise NotOfTheJob("somebody repeats what was said before an earlier start of the ranks")
    return attempt, listener


def _me() -> str:
    return f"the agent on {socket.gethostname()}"


def _say(text: str) -> None:
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
