"""rdmarun, the command: reads its options, starts the agents, passes signals on.

Floor: launcher. Thread: the main one.
"""

import os
import secrets
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .job import Job
from .launch import Launch, say
from .limits import make_room
from .mpi_command import mpi_command
from .mpi_find import MpiError, find_mpi
from .options import Options, parse
from .processes import own_module
from .rank_env import sets_one_thread


def main(argv: Sequence[str] | None = None) -> None:
    _open_standard_files()
    options = parse(sys.argv[1:] if argv is None else argv, os.environ, version())
    try:
        sys.exit(run(options))
    except (MpiError, OSError) as error:
        say(str(error))
        sys.exit(1)


def run(options: Options) -> int:
    """Runs the job and returns its status; OSError if something that it needs cannot be had."""
    if options.check_build:
        from .check_build import check_build

        return check_build(version())
    if not options.module and not Path(options.script).is_file():
        say(f"{options.script}: there is no such script (a module is started with -m)")
        return 2
    make_room(ranks=0)
    job = _job(options)
    if sets_one_thread(job):
        say("OMP_NUM_THREADS is not set: each rank gets 1 thread (-x OMP_NUM_THREADS=N for more)")
    agent = [*own_module("agent"), str(len(job.hosts))]
    if job.all_local and len(job.hosts) == 1:
        # Not by mpiexec, which listens on all interfaces, to whoever can reach them.
        return _launch(options, job, "the agent", "without mpiexec", agent, dict(os.environ))
    mpi = find_mpi()
    argv, extra = mpi_command(mpi.mpiexec, mpi.flavour, job.hosts, agent, os.getuid() == 0)
    return _launch(options, job, "mpiexec", mpi.version, argv, os.environ | extra)


def _launch(
    options: Options, job: Job, name: str, how: str, argv: list[str], env: dict[str, str]
) -> int:
    if options.verbose:
        say(f"{how}: {shlex.join(argv)}")
    return Launch(job, name, argv, env).run()


def _open_standard_files() -> None:
    """Whichever is closed gets a file that cannot be used, or the next one opened would be it."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if fd == 0 else os.O_RDONLY)


def version() -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("rdmacoll")
    except PackageNotFoundError:
        return "not installed"


def _job(options: Options) -> Job:
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise OSError("the current folder has been removed; change to another") from None
    start = ["-m", options.script] if options.module else [options.script]
    return Job(
        hosts=options.hosts,
        argv=[*start, *options.args],
        cwd=cwd,
        env=options.env,
        run_id=secrets.token_hex(8),
        start_timeout_s=options.start_timeout_s,
        min_np=options.min_np,
        max_restarts=options.max_restarts,
        elastic=options.elastic,
        tag_output=options.tag_output,
        output_dir=options.output_dir,
        verbose=options.verbose,
    )
