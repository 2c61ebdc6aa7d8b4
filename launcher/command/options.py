"""The command line of rdmarun: argv -> Options. Reads files of hosts, and touches nothing.

Floor: launcher/command. Thread: any.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.bind.binding import Bind

from rdmacoll.base.arguments import seconds
from rdmacoll.base.byte_sizes import parse_size

from .as_gloo import AS_GLOO, with_as_gloo
from .config_file import FLAG, parse_with_file
from .flags.horovod_options import add_horovod_options, apply_horovod_options, with_horovod
from .flags.output_options import add_output_options, wrong_about_output
from .flags.remote_options import add_remote_options, network_environment, remote_environment
from .flags.server_options import add_server_options, place_servers
from .flags.torchrun_flags import add_torchrun_options, check_torchrun_options, spelled
from .where import choose_hosts

DEFAULT_START_TIMEOUT_S = 300.0
DIGITS = 9  # that a number of ranks or of restarts may have

RANKS = "ranks to start (default: one for each slot of the hosts that are given)"
DESCRIPTION = (
    "Starts a python script, or any command, as N ranks, on this host or on several, and "
    "supervises them."
)
EPILOG = """\
The ranks get torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, ...) and the
environment and folder that rdmarun was started in. The first rank that fails ends the job,
unless --min-np, --elastic or --max-restarts says otherwise; rdmarun then exits with that rank's
status (128 + the signal, if one killed it).

  rdmarun -np 4 train.py --epochs 3
  rdmarun -np 4 python train.py --epochs 3     # the same
  rdmarun -np 4 -m package.train
  rdmarun -np 2 bash -c 'echo $RANK'           # any command, on PATH or executable
  rdmarun -np 8 -H node1:4,node2:4 train.py
  rdmarun train.py                             # in a job of Slurm: on all its hosts and slots"""


@dataclass(frozen=True)
class Options:
    hosts: list[Host]  # with the ranks placed on them
    said: list[str]  # what the user is to be told at once
    remote_env: dict[str, str]  # for what starts programs on other hosts
    mpi_args: list[str]
    script: str
    args: list[str]
    module: bool
    no_python: bool
    role: str
    bind: str
    env: dict[str, str]
    start_timeout_s: float
    min_np: int | None
    max_restarts: int
    elastic: bool
    preload: list[str]
    horovod: bool
    servers: list[int]  # the host of each, by its index
    server_restarts: int
    server_memory_bytes: int | None
    server_replicas: int
    mount: str | None
    output_dir: str | None
    tag_output: bool
    timestamp: bool
    shown: list[int] | None  # local ranks whose output is; None: all
    verbose: bool
    check_build: bool


def parse(argv: Sequence[str], environ: Mapping[str, str], version: str) -> Options:
    """Ends the process with status 2 and a clear line when argv is wrong, as argparse does."""
    parser = _parser(version)
    try:
        args = parse_with_file(parser, argv)
        apply_horovod_options(args)
    except ValueError as error:
        parser.error(str(error))
    hosts: list[Host] = []
    servers: list[int] = []
    torchrun_said: list[str] = []
    if args.check_build:
        hosts_said = ""
    elif not args.script:
        parser.error("what shall the ranks run? give a python script, a command, or -m module")
    else:
        try:
            where = choose_hosts(
                args.hosts, args.hostfile, args.np, environ, args.nproc_per_node, args.standalone
            )
            servers = place_servers(args, where.hosts)
            torchrun_said = check_torchrun_options(args, where.hosts)
        except ValueError as error:
            parser.error(str(error))
        hosts, hosts_said = where.hosts, where.said
        ranks = sum(host.slots for host in hosts)
        if wrong := _wrong_about_failures(args, ranks) or wrong_about_output(args, hosts):
            parser.error(wrong)
    try:
        ours = _heap(args.heap_size) | network_environment(args) | args.horovod_env
        env = with_horovod(args, dict(environ) | ours | _settings(args.env, environ))
        env = with_as_gloo(args.as_gloo, env)
    except ValueError as error:
        parser.error(str(error))
    return Options(
        hosts=hosts,
        said=[hosts_said] * bool(hosts_said) + args.horovod_said + torchrun_said,
        remote_env=remote_environment(args, environ),
        mpi_args=args.mpi_args,
        script=args.script,
        args=args.args,
        module=args.module,
        no_python=args.no_python,
        role=args.role,
        bind=args.bind,
        env=env,
        start_timeout_s=args.start_timeout,
        min_np=args.min_np,
        max_restarts=args.max_restarts,
        elastic=args.elastic,
        preload=list(dict.fromkeys(chain.from_iterable(args.preload))),
        horovod=args.horovod,
        servers=servers,
        server_restarts=args.server_restarts or 0,
        server_memory_bytes=args.server_memory,
        server_replicas=args.server_replicas or 2,
        mount=args.mount,
        output_dir=args.output_filename,
        tag_output=args.tag_output,
        timestamp=args.timestamp,
        shown=args.local_ranks_filter,
        verbose=args.verbose,
        check_build=args.check_build,
    )


def _parser(version: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "rdmarun",
        usage="rdmarun [-np N] [options] script [args ...]\n       "
        "rdmarun [-np N] [options] command [args ...]\n       "
        "rdmarun [-np N] [options] -m module [args ...]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    _add_where(parser)
    add("-m", "--module", action="store_true", help="script is a module, as python -m has it")
    add(
        *spelled("--no-python"),
        action="store_true",
        help="script is a command, also where it is python or ends with .py",
    )
    add(
        "-x",
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="set a variable for the ranks; NAME alone asks that it be set in this environment, "
        "which the ranks get as it is (repeatable)",
    )
    add(
        "--heap-size",
        type=_bytes,
        metavar="SIZE",
        help="how large each rank's heap may get, 8G or 512M (default: half of the host's memory); "
        "sets RDMACOLL_HEAP_BYTES",
    )
    add(
        "--start-timeout",
        type=seconds,
        default=DEFAULT_START_TIMEOUT_S,
        metavar="SECONDS",
        help="longest time until every host runs its agent, and, once one rank has joined the "
        "first exchange of a group, until all have (default: %(default)g)",
    )
    _add_preload(parser)
    _add_failures(parser)
    add_server_options(parser, _whole, _bytes, _folder)
    add_remote_options(parser)
    add_horovod_options(parser, _whole, _positive)
    add("--as-gloo", action="store_true", help=AS_GLOO)
    add_torchrun_options(parser, _whole)
    add_output_options(parser, _whole, _folder)
    add(
        FLAG,
        metavar="FILE",
        help="options by their long names, in TOML, as in `nproc-per-node = 4`; those of the "
        "command line go before them",
    )
    add("--verbose", action="store_true", help="say what is started where, and when")
    add("--check-build", action="store_true", help="say what this installation can do, and exit")
    add("--version", action="version", version=f"rdmarun (rdmacoll) {version}")
    add(
        "script",
        nargs="?",
        help="a python script (.py), or what is on PATH or executable, or with -m a module",
    )
    add("args", nargs=argparse.REMAINDER, help="the script's own arguments")
    return parser


def _add_where(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-np", "-n", "--np", "--nproc", dest="np", type=_positive, metavar="N", help=RANKS)
    add(
        *spelled("--nproc-per-node"),
        type=_per_node,
        metavar="N",
        help="ranks on each host, whatever its slots are; cpu: as many as this host has CPUs",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-H",
        "--hosts",
        metavar="HOST:SLOTS,...",
        help="hosts and how many ranks each may take, filled in this order "
        "(default: those of a job of Slurm, PBS, LSF or Kubernetes's MPIJob, else this host)",
    )
    where.add_argument(
        "--hostfile",
        "-hostfile",
        metavar="FILE",
        help="the same from a file: lines `host slots=N` or `host:N`",
    )
    where.add_argument(
        "--standalone", action="store_true", help="this host alone, also in a batch system's job"
    )
    add(
        "--bind",
        choices=[mode.value for mode in Bind],
        default=Bind.NONE.value,
        help="cores: each rank gets its own part of the host's cores; numa: the NUMA node that it "
        "is on; OMP_NUM_THREADS, where it is not set, is what a rank has of them (default: none, "
        "and 1 thread)",
    )


def _add_preload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preload",
        action="append",
        default=[],
        type=_modules,
        metavar="MODULE,...",
        help="import these once on each host and fork the ranks from that process: many ranks "
        "start sooner and share its memory, as in --preload torch (repeatable)",
    )


def _add_failures(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--min-np",
        type=_positive,
        metavar="N",
        help="go on while no more ranks have failed than leave N: the others get "
        "rdmacoll.DeadRankError and go on with rdmacoll.shrink_group() (default: all are needed)",
    )
    add(
        *spelled("--max-restarts"),
        type=_whole,
        default=0,
        metavar="N",
        help="start all ranks again when the job fails for one of them, so many times; "
        "TORCHELASTIC_RESTART_COUNT tells the script (default: 0)",
    )
    add(
        "--elastic",
        action="store_true",
        help="start a failed rank again alone while --min-np are left: it joins the others in "
        "rdmacoll.elastic.run(). Each counts as one of --max-restarts; -np is the most ranks "
        "that there are",
    )


def _wrong_about_failures(args: argparse.Namespace, ranks: int) -> str | None:
    if args.min_np is not None and args.min_np > ranks:
        return f"--min-np {args.min_np} is more than the {ranks} ranks of -np"
    if args.elastic and (args.min_np is None or args.min_np == ranks):
        given = "no --min-np" if args.min_np is None else f"--min-np {args.min_np}"
        return (
            f"--elastic with {given} of the {ranks} ranks of -np: say how many go on while a "
            "lost rank comes back, with a --min-np below that"
        )
    if args.elastic and args.max_restarts == 0:
        return (
            "--elastic with --max-restarts 0: say how many times in all a rank may be started "
            "again, with --max-restarts N"
        )
    return None


def _settings(settings: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    env = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name:
            raise ValueError(f"-x {setting}: names no variable; write -x NAME=VALUE")
        if not equals and name not in environ:
            raise ValueError(f"-x {name}: it is not set here; set it, or write -x {name}=VALUE")
        env[name] = value if equals else environ[name]
    return env


def _heap(size_bytes: int | None) -> dict[str, str]:
    return {} if size_bytes is None else {"RDMACOLL_HEAP_BYTES": str(size_bytes)}


def _folder(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("'' names no folder")
    return text


def _modules(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise argparse.ArgumentTypeError(f"{name!r} is no name of a module")
    return names


def _per_node(text: str) -> int:
    if text == "cpu":
        return len(os.sched_getaffinity(0))
    if text in ("auto", "gpu", "xpu"):
        raise argparse.ArgumentTypeError(
            f"{text!r} would count GPUs; say how many ranks, or `cpu` for one per CPU"
        )
    return _positive(text)


def _bytes(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {'9' * DIGITS}")
    return int(text)


def _positive(text: str) -> int:
    if (value := _whole(text)) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
