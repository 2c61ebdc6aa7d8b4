"""The options about the ranks' output. Pure.

Floor: launcher/command/flags. Thread: any.
"""

import argparse
from collections.abc import Callable, Sequence

from rdmacoll.launcher.base.hosts import Host

from .torchrun_flags import spelled


def add_output_options(
    parser: argparse.ArgumentParser, whole: Callable[[str], int], folder: Callable[[str], str]
) -> None:
    """whole, folder: read a number, and the name of a folder."""

    def local_ranks(text: str) -> list[int]:
        return [whole(number) for number in text.split(",")]

    add = parser.add_argument
    add(
        "--output-filename",
        *spelled("--log-dir"),
        dest="output_filename",
        type=folder,
        metavar="DIR",
        help="also write each rank's output to DIR/rank.N/stdout and DIR/rank.N/stderr, and each "
        "server's to files in DIR/server.N, the mount's in DIR/mount",
    )
    add(
        "--tag-output",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="begin each line of output with [rank]:, [server N]: or [mount]: (default: yes)",
    )
    add(
        "--timestamp",
        "--prefix-output-with-timestamp",
        "-prefix-timestamp",
        action="store_true",
        help="begin each line of output with the time at which it came",
    )
    add(
        *spelled("--local-ranks-filter"),
        type=local_ranks,
        metavar="N,...",
        help="show the output of these local ranks alone; files have that of all, and so have the "
        "last lines of a rank that fails",
    )


def wrong_about_output(args: argparse.Namespace, hosts: Sequence[Host]) -> str | None:
    last = max(args.local_ranks_filter or [0])
    most = max(host.slots for host in hosts)
    if last < most:
        return None
    return f"--local-ranks-filter {last}: local ranks are 0 to {most - 1} here"
