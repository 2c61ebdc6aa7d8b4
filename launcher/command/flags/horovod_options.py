"""--horovod, and the options of horovodrun that rdmarun does not have by these names. Pure.

Of horovodrun's others -np, -H, --hostfile, -p, -i, --network-interfaces, --mpi-args, --min-np,
--start-timeout, --output-filename, --verbose and --check-build are rdmarun's own. What there is no
more to do about than to say it is in horovod_flags.py.
Floor: launcher/command/flags. Thread: any.
"""

import argparse
from collections.abc import Callable
from typing import Any

from rdmacoll.base.horovod_folder import with_folder
from rdmacoll.base.horovod_variables import LOG_LEVELS

from .horovod_flags import NOT_NEEDED, REFUSED
from .words import about_not_needed, list_them

GROUP = "Horovod"
ABOUT = (
    "--horovod is for scripts of Horovod; with it the other options of horovodrun are understood"
)


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
        self.take(namespace, self.const if self.nargs == 0 else values)

    def take(self, namespace: argparse.Namespace, value: Any) -> None:
        """By default it is rdmarun's option of that dest."""
        setattr(namespace, self.dest, value)


class _Variable(_Option):
    """Sets the variable of its dest for the ranks."""

    def take(self, namespace: argparse.Namespace, value: str) -> None:
        namespace.horovod_env = namespace.horovod_env | {self.dest: value}


class _Interface(_Option):
    """One interface by its whole name; the option is given once for each."""

    def take(self, namespace: argparse.Namespace, value: str) -> None:
        before = namespace.network_interfaces
        namespace.network_interfaces = f"={value}" if before is None else f"{before},{value}"


class _NotNeeded(_Option):
    def take(self, namespace: argparse.Namespace, value: object) -> None:
        namespace.horovod_idle = [*namespace.horovod_idle, self.option_strings[0]]


class _Refused(_Option):
    def take(self, namespace: argparse.Namespace, value: list[str] | None) -> None:
        flag = self.option_strings[0]
        given = " ".join([flag, *(value or [])])
        namespace.horovod_refused = [*namespace.horovod_refused, f"{given}: {REFUSED[flag][1]}"]


def add_horovod_options(
    parser: argparse.ArgumentParser, whole: Callable[[str], int], positive: Callable[[str], int]
) -> None:
    """whole, positive: read a number. Call it behind what adds rdmarun's own options."""
    parser.set_defaults(horovodrun=[], horovod_env={}, horovod_idle=[], horovod_refused=[])
    group = parser.add_argument_group(GROUP, f"{ABOUT}\n{list_them(NOT_NEEDED, REFUSED)}")
    group.add_argument(
        "--horovod",
        action="store_true",
        help="ranks, and python processes that they start, find rdmacoll as `horovod`",
    )

    def add(*flags: str, **settings: Any) -> None:
        group.add_argument(*flags, **{"action": _Option, "default": argparse.SUPPRESS, **settings})

    def set_variable(flag: str, name: str, read: Callable[[str], str], what: str) -> None:
        add(flag, dest=name, action=_Variable, type=read, metavar=what, help=f"sets {name}")

    def switch(flag: str, name: str, value: str) -> None:
        told = f"sets {name} to {value}"
        add(flag, dest=name, action=_Variable, nargs=0, const=value, help=told)

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
    switch("--timeline-mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES", "1")
    switch("--no-timeline-mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES", "0")
    stall, seconds = "--stall-check", "HOROVOD_STALL"
    set_variable(f"{stall}-warning-time-seconds", f"{seconds}_CHECK_TIME_SECONDS", number, "N")
    set_variable(f"{stall}-shutdown-time-seconds", f"{seconds}_SHUTDOWN_TIME_SECONDS", number, "N")
    switch("--no-stall-check", "HOROVOD_STALL_CHECK_DISABLE", "1")
    switch("--stall-check", "HOROVOD_STALL_CHECK_DISABLE", "0")
    set_variable("--elastic-timeout", "HOROVOD_ELASTIC_TIMEOUT", lambda t: str(positive(t)), "N")
    set_variable("--log-level", "RDMACOLL_LOG", _log_level, "LEVEL")
    add("-cb", dest="check_build", nargs=0, const=True, help="--check-build")
    for action, flags in (_NotNeeded, NOT_NEEDED), (_Refused, REFUSED):
        for flag, (values, _) in flags.items():
            add(flag, action=action, nargs=values, help=argparse.SUPPRESS)


def apply_horovod_options(args: argparse.Namespace) -> None:
    """Turns what must be looked at together into rdmarun's own. ValueError if it cannot."""
    if args.horovodrun and not args.horovod:
        raise ValueError(f"{args.horovodrun[0]} is an option of horovodrun: give --horovod, too")
    if args.horovod_refused:
        raise ValueError(args.horovod_refused[0])
    args.horovod_said = about_not_needed(args.horovod_idle, NOT_NEEDED)
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
