"""--horovod, and the options of horovodrun that rdmarun does not have by these names. Pure.

Of horovodrun's others -np, -H, --hostfile, -p, -i, --network-interfaces, --mpi-args, --min-np,
--start-timeout, --output-filename, --verbose and --check-build are rdmarun's own.
Floor: launcher/command. Thread: any.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from rdmacoll.base.horovod_folder import with_folder

GROUP = "Horovod"
ABOUT = (
    "--horovod is for scripts of Horovod; with it the other options of horovodrun are understood"
)
# What horovodrun wants to be told, and rdmarun does not: how many values it has, and why not.
NOT_NEEDED = {
    "--gloo": (0, "ranks meet by rdmarun's agents"),
    "--mpi": (0, "ranks meet by rdmarun's agents"),
    "--disable-cache": (0, "rdmarun keeps no checks of hosts from one job to the next"),
    "--fusion-threshold-mb": (1, "short tensors are sent together, long ones without a copy"),
    "--cycle-time-ms": (1, "there are no cycles: an operation starts once all ranks want it"),
}
LOG_LEVELS = {  # as RDMACOLL_LOG has them
    "TRACE": "debug",
    "DEBUG": "debug",
    "INFO": "info",
    "WARNING": "warn",
    "ERROR": "error",
    "FATAL": "error",
}


class _Option(argparse.Action):
    """Notes that an option of horovodrun was given, and what comes of it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        namespace.horovodrun = [*namespace.horovodrun, option_string]
        self.take(namespace, values)

    def take(self, namespace: argparse.Namespace, value: Any) -> None:
        """By default it is rdmarun's option of that dest."""
        setattr(namespace, self.dest, value)


class _Variable(_Option):
    """Sets the variable of its dest for the ranks."""

    def take(self, namespace: argparse.Namespace, value: str) -> None:
        namespace.horovod_env = namespace.horovod_env | {self.dest: value}


class _Flag(_Variable):
    """Sets it to 1; it has no value."""

    def take(self, namespace: argparse.Namespace, value: object) -> None:
        super().take(namespace, "1")


class _Interface(_Option):
    """One interface by its whole name; the option is given once for each."""

    def take(self, namespace: argparse.Namespace, value: str) -> None:
        before = namespace.network_interfaces
        namespace.network_interfaces = f"={value}" if before is None else f"{before},{value}"


class _NotNeeded(_Option):
    def take(self, namespace: argparse.Namespace, value: Sequence[str]) -> None:
        flag = self.option_strings[0]
        said = f"{flag} is not needed: {NOT_NEEDED[flag][1]}"
        namespace.horovod_said = [*namespace.horovod_said, said]


def add_horovod_options(
    parser: argparse.ArgumentParser, whole: Callable[[str], int], positive: Callable[[str], int]
) -> None:
    """whole, positive: read a number. Call it behind what adds rdmarun's own options."""
    parser.set_defaults(horovodrun=[], horovod_env={}, horovod_said=[])
    group = parser.add_argument_group(GROUP, ABOUT)
    group.add_argument(
        "--horovod",
        action="store_true",
        help="ranks, and python processes that they start, find rdmacoll as `horovod`",
    )

    def add(*flags: str, **settings: Any) -> None:
        group.add_argument(*flags, **{"action": _Option, "default": argparse.SUPPRESS, **settings})

    def set_variable(flag: str, name: str, read: Callable[[str], str], what: str) -> None:
        add(flag, dest=name, action=_Variable, type=read, metavar=what, help=f"sets {name}")

    def number(text: str) -> str:
        return str(whole(text))

    add("--num-proc", dest="np", type=positive, metavar="N", help="-np")
    add("--min-num-proc", dest="min_np", type=positive, metavar="N", help="--min-np")
    add(
        "--max-np",
        "--max-num-proc",
        type=positive,
        default=None,
        metavar="N",
        help="-np, and the same where both are given: all ranks are started at once",
    )
    add("--reset-limit", dest="max_restarts", type=whole, metavar="N", help="--max-restarts")
    add(
        "--network-interface",
        "--nics",
        dest="network_interfaces",
        action=_Interface,
        type=_word,
        metavar="NAME",
        help="one of --network-interfaces, by its whole name (repeatable)",
    )
    set_variable("--timeline-filename", "HOROVOD_TIMELINE", _word, "FILE")
    marks = "HOROVOD_TIMELINE_MARK_CYCLES"
    add("--timeline-mark-cycles", dest=marks, action=_Flag, nargs=0, help=f"sets {marks}")
    stall, seconds = "--stall-check", "HOROVOD_STALL"
    set_variable(f"{stall}-warning-time-seconds", f"{seconds}_CHECK_TIME_SECONDS", number, "N")
    set_variable(f"{stall}-shutdown-time-seconds", f"{seconds}_SHUTDOWN_TIME_SECONDS", number, "N")
    set_variable("--log-level", "RDMACOLL_LOG", _log_level, "LEVEL")
    for flag, (values, why) in NOT_NEEDED.items():
        add(flag, action=_NotNeeded, nargs=values, metavar="X", help=f"not needed: {why}")
    add(
        "--host-discovery-script",
        default=None,
        metavar="SCRIPT",
        help="cannot be had: name all hosts, and give --elastic",
    )


def apply_horovod_options(args: argparse.Namespace) -> None:
    """Turns what must be looked at together into rdmarun's own. ValueError if it cannot."""
    if args.horovodrun and not args.horovod:
        raise ValueError(f"{args.horovodrun[0]} is an option of horovodrun: give --horovod, too")
    if args.host_discovery_script is not None:
        raise ValueError(
            f"--host-discovery-script {args.host_discovery_script}: rdmarun asks for no hosts while"
            " a job runs; name them all with -H or --hostfile, and give --elastic --min-np N "
            "--max-restarts M, by which a lost rank, and a lost host, comes back"
        )
    if args.max_np is None:
        return
    if args.np not in (None, args.max_np):
        raise ValueError(
            f"--max-np {args.max_np} with -np {args.np}: rdmarun starts at once all ranks that "
            "there may be; give -np alone, and with --min-np how few go on"
        )
    args.np = args.max_np


def with_horovod(args: argparse.Namespace, env: dict[str, str]) -> dict[str, str]:
    """The environment of the ranks, whose python then finds rdmacoll as `horovod`."""
    if not args.horovod:
        return env
    return env | {"PYTHONPATH": with_folder(env.get("PYTHONPATH"))}


def _word(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("'' is no name")
    return text


def _log_level(text: str) -> str:
    if text not in LOG_LEVELS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(LOG_LEVELS)}")
    return LOG_LEVELS[text]
