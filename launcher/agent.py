"""The agent of a host: what mpiexec starts, once per host; the only process that loads MPI.

Floor: launcher. Thread: the main one.
"""

import os
import secrets
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from . import store
from .cause import Cause
from .emergency import watch_signals
from .job import ASK, PIECE_BYTES, Job
from .keeper import keep
from .rank_env import Attempt, Master, master_address
from .report import describe, exit_status, failure_lines

if TYPE_CHECKING:
    from mpi4py import MPI

SECRET_BYTES = 32


def main() -> None:
    """`agent N`: one of N agents. All end with the job's status: mpiexec returns that of any."""
    status = keep(lambda: _run(int(sys.argv[1])))
    if status < 0:
        print(
            f"rdmarun: the agent on {socket.gethostname()} was killed by "
            f"{signal.Signals(-status).name}; its ranks were ended",
            file=sys.stderr,
            flush=True,
        )
        status = 128 - status
    os._exit(status)


def _run(agents: int) -> int:
    from mpi4py import MPI  # here, not above: the keeper shall have no MPI

    comm = MPI.COMM_WORLD
    if comm.size != agents:
        print(
            f"rdmarun: mpiexec started {agents} agents, but they see an MPI world of {comm.size}: "
            "mpiexec and mpi4py's library are of different MPIs "
            f"({MPI.Get_library_version().splitlines()[0]}); use the mpiexec of that library",
            file=sys.stderr,
            flush=True,
        )
        return 1
    _unlink_segments(comm)
    job = comm.bcast(Job.from_line(_ask_for_line()) if comm.rank == 0 else None)
    woken = watch_signals()
    cause, restarts = _attempt(comm, job, 0, woken)
    while cause.of_a_rank and restarts < job.max_restarts:
        cause, restarts = _attempt(comm, job, restarts + 1, woken)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # no ranks are left to be ended first
    MPI.Finalize()
    return exit_status(cause)


def _attempt(comm: "MPI.Intracomm", job: Job, number: int, woken: int) -> tuple[Cause, int]:
    """Starts all ranks, and returns why they were ended, when they have.

    The numbers are restarts: so many before this one, and up to its end.
    """
    from .supervisor import Supervisor

    attempt, listener = _agree(comm, job, number)
    supervisor = Supervisor(comm, job, attempt)
    if comm.rank == 0:
        supervisor.watch_control(0)
    supervisor.start(listener, woken)
    supervisor.run()
    failures, restarts = comm.gather(supervisor.losses.failures), supervisor.losses.restarts
    if failures is not None and supervisor.cause.why:
        said = describe(supervisor.cause, job, supervisor.late)
        everybodys = [failure for of_host in failures for failure in of_host]
        for line in [said] if said else failure_lines(everybodys):
            supervisor.err.say(line)
        if supervisor.cause.of_a_rank and restarts < job.max_restarts:
            number = restarts + 1
            supervisor.err.say(f"starting all ranks again (restart {number} of {job.max_restarts})")
    supervisor.close()
    return supervisor.cause, restarts


def _agree(comm: "MPI.Intracomm", job: Job, number: int) -> tuple[Attempt, socket.socket | None]:
    """Agent 0 opens the store's port and makes the ranks' secret; then all know.

    The secret is in the memory of the agents and of the ranks that ask for it, and nowhere else:
    not in the environment and not on a command line, which others could read.
    """
    listener, attempt = None, None
    if comm.rank == 0:
        listener = store.listen(job.all_local)
        address = master_address(job, socket.gethostname())
        master = Master(address, listener.getsockname()[1])
        attempt = Attempt(number, master, secrets.token_bytes(SECRET_BYTES))
    return comm.bcast(attempt), listener


def _unlink_segments(comm: "MPI.Intracomm") -> None:
    """Unlinks MPICH's files in /dev/shm, which it keeps to the end: kill -9 would leave them."""
    comm.Barrier()  # the other agents of a machine have mapped them too
    with open("/proc/self/maps") as maps:
        names = {line.split()[-1] for line in maps if "/dev/shm/mpich_" in line}
    for name in names:
        with suppress(FileNotFoundError):  # another agent was quicker
            os.unlink(name)


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
