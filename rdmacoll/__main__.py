"""The command `rdmacoll`: what is installed, what this machine offers it, how fast it is, what it
would do on other hosts, and what the ranks of a job are doing."""

import argparse
import errno
import json
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from .bench.options import BadArgument, checked, describe
from .debug.command import debug
from .debug.options import describe as describe_debug
from .mount import options as mount_options
from .plan import options as plan_options
from .servers import options as ps_options
from .top import options as top_options
from .tune import options as tune_options

DESCRIPTION = 'A torch.distributed backend named "rdma" for CPU tensors.'
INFO = """\
What is installed and compiled in, the RDMA devices of this machine, and which one a rank uses. The
exit status is 1 if the compiled module does not load, 2 if --peers is asked outside of a job."""


def main() -> int:
    """The exit status. Output that nobody reads any further, as behind `head`, is no error; output
    that there is no room for is one."""
    try:
        status = _command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        status = 0
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:  # of a file: it has a name
            raise
        print(f"rdmacoll: the output cannot be written: {error.strerror}", file=sys.stderr)
        status = 1
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
    return status


def _command() -> int:
    if sys.argv[1:3] == ["bench", "transfer"]:
        return _bench_transfer(sys.argv[3:])
    if sys.argv[1:3] == ["bench", "models"]:
        return _bench_models(sys.argv[3:])
    parser = argparse.ArgumentParser(prog="rdmacoll", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    info = commands.add_parser(
        "info", help="what is installed, and what this machine offers", description=INFO
    )
    what = info.add_mutually_exclusive_group()
    what.add_argument("--devices", action="store_true", help="this machine only; loads no torch")
    what.add_argument(
        "--peers",
        action="store_true",
        help="what the ranks of a job reach each other by, and why: "
        "rdmarun -np 4 -m rdmacoll info --peers",
    )
    info.add_argument("--json", action="store_true", help="the same for programs")
    bench = commands.add_parser(
        "bench", help="how fast collectives are, beside other systems", allow_abbrev=False
    )
    describe(bench)
    tune = commands.add_parser(
        "tune", help="measure which algorithm is quickest when", allow_abbrev=False
    )
    tune_options.describe(tune)
    plan = commands.add_parser(
        "plan", help="which plan a collective takes on hosts that one names", allow_abbrev=False
    )
    plan_options.describe(plan)
    describe_debug(commands.add_parser("debug", help="what the ranks of a job are doing"))
    top_options.describe(
        commands.add_parser("top", help="the ranks of a job, live", allow_abbrev=False)
    )
    ps_options.describe(commands.add_parser("ps", help="parameter servers", allow_abbrev=False))
    mount_options.describe(
        commands.add_parser("mount", help="the files of a job's servers", allow_abbrev=False)
    )
    arguments = parser.parse_args()
    if arguments.command == "mount":
        from .mount.daemon import mount

        return mount(arguments)
    if arguments.command == "ps":
        return _ps(arguments)
    if arguments.command == "bench":
        return _bench(bench, arguments)
    if arguments.command == "tune":
        return _tune(tune, arguments)
    if arguments.command == "plan":
        return _plan(plan, arguments)
    if arguments.command == "debug":
        return debug(arguments)
    if arguments.command == "top":
        return _top(arguments)
    if arguments.peers:
        return _peers(arguments.json)
    return _info(arguments.devices, arguments.json)


def _info(devices_only: bool, as_json: bool) -> int:
    from .info.report import device_report, full_report
    from .info.text import lines

    report = device_report() if devices_only else full_report()
    _print(report if as_json else lines(report), as_json)
    return 1 if report.get("build", {}).get("error") else 0


def _bench(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    from .bench.command import bench

    try:
        bench(checked(arguments), sys.argv[2:])
    except BadArgument as error:
        parser.error(str(error))
    return 0


def _bench_models(argv: list[str]) -> int:
    from .bench.models import options
    from .bench.models.command import models

    return _behind_two_words(options, models, argv)


def _bench_transfer(argv: list[str]) -> int:
    from .bench.transfer import options
    from .bench.transfer.command import transfer

    return _behind_two_words(options, transfer, argv)


def _behind_two_words(
    options: ModuleType, command: Callable[[Any, list[str]], None], argv: list[str]
) -> int:
    """A command with a line of its own, which `options` describes and checks."""
    parser = argparse.ArgumentParser(prog=options.PROG, allow_abbrev=False)
    options.describe(parser)
    try:
        command(options.checked(parser.parse_args(argv)), argv)
    except BadArgument as error:
        parser.error(str(error))
    return 0


def _tune(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    from .tune.command import tune

    try:
        tune(tune_options.checked(arguments), sys.argv[2:])
    except BadArgument as error:
        parser.error(str(error))
    return 0


def _plan(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    from .plan.command import plan

    try:
        plan(plan_options.checked(arguments))
    except BadArgument as error:
        parser.error(str(error))
    return 0


def _top(arguments: argparse.Namespace) -> int:
    try:
        from .top.command import top
    except ImportError as error:
        print(f"rdmacoll top: {error}; pip install 'rdmacoll[top]'", file=sys.stderr)
        return 1
    return top(arguments)


def _ps(arguments: argparse.Namespace) -> int:
    if arguments.what == "serve":
        from .servers.by_hand import serve

        return serve(arguments)
    if arguments.store is None:
        from .servers.command import status_of_host

        return status_of_host(arguments)
    from .ps.looking import look

    return look(arguments)


def _peers(as_json: bool) -> int:
    from .info.peers import as_data, gather_paths, lines

    if "RANK" not in os.environ:
        print(
            "rdmacoll info --peers asks the ranks of a job; start one with "
            "rdmarun -np 4 -m rdmacoll info --peers, or with torchrun",
            file=sys.stderr,
        )
        return 2
    ranks = gather_paths()
    if ranks:  # on rank 0
        _print(as_data(ranks) if as_json else lines(ranks), as_json)
    return 0


def _print(what: Iterable[object], as_json: bool) -> None:
    if as_json:
        print(json.dumps(what, indent=2))
    else:
        print(*what, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
