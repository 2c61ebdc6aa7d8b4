"""rdmarun, the command: reads its options, starts the agents, passes signals on.

Floor: launcher. Thread: the main one.
"""

import os
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing

from rdmacoll.launcher.agent.rank_env import sets_one_thread
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.limits import make_room
from rdmacoll.launcher.command.agents import Agents
from rdmacoll.launcher.command.launch import Launch, say
from rdmacoll.launcher.command.mpi_find import Mpi, MpiError, find_mpi
from rdmacoll.launcher.command.options import Options, parse
from rdmacoll.launcher.command.script import Program, ScriptError, check_start_up, program_of
from rdmacoll.launcher.command.starter import Command
from rdmacoll.launcher.keys.key import Key
from rdmacoll.launcher.keys.key_sharing import KeyNotShared, KeySharing
from rdmacoll.launcher.keys.secret_file import SecretFileError, read_secret_file

from rdmacoll.base.own_module import own_module

KEY_BYTES = 32


def main(argv: Sequence[str] | None = None) -> None:
    _open_standard_files()
    options = parse(sys.argv[1:] if argv is None else argv, os.environ, version())
    try:
        sys.exit(run(options))
    except (MpiError, SecretFileError, KeyNotShared, OSError) as error:
        say(str(error))
        sys.exit(1)
    except KeyboardInterrupt:  # there was no Launch yet to pass it on
        sys.exit(128 + signal.SIGINT)


def run(options: Options) -> int:
    """Runs the job and returns its status. OSError if it cannot be started."""
    if options.check_build:
        from rdmacoll.launcher.command.check_build import check_build

        return check_build(version())
    try:
        program = program_of(
            options.script, options.args, options.module, options.no_python, options.env
        )
        check_start_up(program, bool(options.preload), options.horovod)
    except ScriptError as error:
        say(str(error))
        return 2
    for line in options.said:
        say(line)
    make_room()
    job = _job(options, program)
    if sets_one_thread(job) and job.bind == "none":
        say(
            "OMP_NUM_THREADS is not set: each rank gets 1 thread (-x OMP_NUM_THREADS=N for more, "
            "or --bind cores for those of its share of the cores)"
        )
    agent = [*own_module("rdmacoll.launcher.agent.main"), ",".join(host.name for host in job.hosts)]
    if job.all_local and len(job.hosts) == 1:
        # mpiexec would listen on all interfaces, for anybody who can reach them.
        if options.verbose:
            say(f"without mpiexec: {shlex.join(agent)}")
        if options.remote_env or options.mpi_args:
            say("the job is on this host alone: nothing is asked of ssh and mpiexec")
        command = Command("the agent", agent, os.environ)
        return Launch(job, Key(b"", ""), [command], _up_by(job)).run()
    return _run_by_mpi(job, find_mpi(), agent, options)


def _run_by_mpi(job: Job, mpi: Mpi, agent: list[str], options: Options) -> int:
    make_room(hosts=len(job.hosts))
    secret_file = job.env.get("RDMACOLL_SECRET_FILE")
    if secret_file is None:
        secret = secrets.token_bytes(KEY_BYTES)
    else:
        secret = read_secret_file(secret_file)
    key, environ = Key(secret, job.run_id), dict(os.environ) | options.remote_env
    agents = Agents(job, key, mpi, agent, options.mpi_args, environ, secret_file)
    commands = agents.first()
    if job.verbose:
        for command in commands:
            say(f"{mpi.version}: {shlex.join(command.argv)}")
    up_by = _up_by(job)
    if secret_file is not None:
        return Launch(job, key, commands, up_by, start_again=agents.again).run()
    with closing(KeySharing(job, key, environ)) as sharing:
        sharing.start(up_by)
        return Launch(job, key, commands, up_by, sharing.close, agents.again).run()


def _up_by(job: Job) -> float:
    return time.monotonic() + job.start_timeout_s


def _open_standard_files() -> None:
    """Opens those that are closed, or the next file to be opened would become one of them. They get
    /dev/null for the wrong direction, so that their use still fails."""
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


def _job(options: Options, program: Program) -> Job:
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise OSError("the current folder has been removed; change to another") from None
    return Job(
        hosts=options.hosts,
        argv=program.argv,
        is_command=program.is_command,
        role=options.role,
        bind=options.bind,
        one_machine=all(host.is_local for host in options.hosts),
        cwd=cwd,
        env=options.env,
        run_id=secrets.token_hex(16),
        start_timeout_s=options.start_timeout_s,
        min_np=options.min_np,
        max_restarts=options.max_restarts,
        elastic=options.elastic,
        preload=options.preload,
        servers=options.servers,
        server_restarts=options.server_restarts,
        server_memory_bytes=options.server_memory_bytes,
        server_replicas=options.server_replicas,
        mount=None if options.mount is None else os.path.abspath(options.mount),
        tag_output=options.tag_output,
        timestamp=options.timestamp,
        shown=options.shown,
        output_dir=options.output_dir,
        verbose=options.verbose,
    )
