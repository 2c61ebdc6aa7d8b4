"""The agent of a host: rdmarun starts it where there is no other, else mpiexec, once per host.

Only where there are others does it load MPI.
Floor: launcher. Thread: the main one.
"""

import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable

from . import store
from .cause import Cause
from .comm import Alone, Comm
from .emergency import watch_signals
from .job import ASK, PIECE_BYTES, Job
from .keeper import keep
from .limits import LimitError
from .rank_env import Attempt, Master, master_address
from .report import describe, exit_status, failure_lines, pack_failures, unpack_failures
from .shm_space import lacks_shm_space
from .supervisor import Supervisor

SECRET_BYTES = 32


def main() -> None:
    """`agent N`: one of N agents. All end with the job's status: mpiexec returns that of any."""
    agents = int(sys.argv[1])
    status = _within_limits(lambda: keep(lambda: _within_limits(lambda: _run(agents))))
    if status < 0:
        _say(f" was killed by {signal.Signals(-status).name}; its ranks were ended")
        status = 128 - status
    os._exit(status)


def _within_limits(run: Callable[[], int]) -> int:
    try:
        return run()
    except LimitError as error:
        _say(f": {error}")
    except BlockingIOError:  # as fork() has it
        _say(": no more processes may be started (ulimit -u)")
    return 1


def _say(text: str) -> None:
    print(f"rdmarun: the agent on {socket.gethostname()}{text}", file=sys.stderr, flush=True)


def _run(agents: int) -> int:
    if agents == 1:
        return _serve(Alone())
    if lacks := lacks_shm_space(socket.gethostname()):
        print(f"rdmarun: {lacks}", file=sys.stderr, flush=True)
        return 1
    from . import over_mpi  # here, not above: the keeper shall have no MPI

    comm = over_mpi.OverMpi()
    if comm.size != agents:
        print(
            f"rdmarun: mpiexec started {agents} agents, but they see an MPI world of {comm.size}: "
            "mpiexec and mpi4py's library are of different MPIs "
            f"({over_mpi.library()}); use the mpiexec of that library",
            file=sys.stderr,
            flush=True,
        )
        return 1
    over_mpi.unlink_segments()
    status = _serve(comm)
    over_mpi.leave()
    return status


def _serve(comm: Comm) -> int:
    """From the job to its status."""
    job = Job.from_line(comm.from_first(_ask_for_line() if comm.rank == 0 else b""))
    woken = watch_signals()
    cause, restarts, lost = _attempt(comm, job, 0, woken)
    while cause.of_a_rank and restarts < job.max_restarts:
        cause, restarts, lost_too = _attempt(comm, job, restarts + 1, woken)
        lost = lost or lost_too
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # no ranks are left to be ended first
    return exit_status(cause) or (os.EX_IOERR if lost else 0)


def _attempt(comm: Comm, job: Job, number: int, woken: int) -> tuple[Cause, int, bool]:
    """Starts all ranks, and returns why they were ended, when they have.

    The numbers are restarts: so many before this one, and up to its end. And whether output of
    this host's ranks is lost.
    """
    attempt, listener = _agree(comm, job, number)
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


def _agree(comm: Comm, job: Job, number: int) -> tuple[Attempt, socket.socket | None]:
    """Agent 0 opens the store's port and makes the ranks' secret; then all know.

    The secret is in the memory of the agents and of the ranks that ask for it, and nowhere else:
    not in the environment and not on a command line, which others could read.
    """
    listener, said = None, b""
    if comm.rank == 0:
        listener = store.listen(job.all_local)
        address = master_address(job, socket.gethostname())
        master = Master(address, listener.getsockname()[1])
        said = Attempt(number, master, secrets.token_bytes(SECRET_BYTES)).to_bytes()
    return Attempt.from_bytes(comm.from_first(said)), listener


def _ask_for_line() -> bytes:
    """The first line of the input; what follows stays unread, for the supervisor."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) % PIECE_BYTES == 0:
            os.write(1, ASK)
        data = os.read(0, PIECE_BYTES)
        if not data:
            raise EOFError("rdmarun ended before it had said what to start")
        line += data
    os.write(1, ASK)
    return bytes(line)
