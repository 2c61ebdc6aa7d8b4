"""Options of torchrun that rdmarun does not have: what changes nothing here, and what cannot be had
and what is to be given in its place. Pure.

Of torchrun's others --nproc-per-node, --standalone, --max-restarts, --role, -m, --module,
--no-python, --log-dir and --local-ranks-filter are rdmarun's own, and --nnodes and --node-rank are
checked.
Floor: launcher/command/flags. Thread: any.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from rdmacoll.launcher.base.hosts import Host

from .words import Words, about_not_needed, list_them

_MEET = "ranks meet by rdmarun's agents"
_SHOWN = (
    "all output is shown, or that of --local-ranks-filter; --output-filename DIR also writes it to "
    "files"
)
_LINES = "--tag-output and --timestamp say how lines begin"
_GREP = "give --output-filename DIR, and search its files with grep"
ONCE = (
    "rdmarun is started once, on one host, and starts the ranks of all of them, which are named by "
    "-H node1:4,node2:4 or --hostfile, or by the batch system's job"
)

# How many values each has, and why it changes nothing.
NOT_NEEDED: Final[Words] = {
    "--rdzv-backend": (1, _MEET),
    "--rdzv-endpoint": (1, _MEET),
    "--rdzv-id": (1, _MEET),
    "--rdzv-conf": (1, _MEET),
    "--master-addr": (1, _MEET),
    "--master-port": (1, _MEET),
    "--local-addr": (1, "--network-interfaces says over which network the ranks talk"),
    "--monitor-interval": (1, "an end of a rank is noticed at once"),
    "--start-method": (1, "each rank is a process of its own, and --preload forks them"),
    "--event-log-handler": (1, "--verbose says what is started where, and when"),
    "--run-path": (0, "each rank's python runs the script"),
    "--redirects": (1, _SHOWN),
    "--tee": (1, _SHOWN),
    "--shutdown-timeout": (1, "ranks have 5 s to end, once they are asked to"),
    "--print-completion": (1, "rdmarun completes nothing in shells"),
}
SHORT: Final = {"--redirects": "-r", "--tee": "-t"}
# How many values each has, and what to do without it.
REFUSED: Final[Words] = {
    "--logs-specs": (1, "rdmarun takes no plugins; --output-filename DIR writes files"),
    "--log-line-prefix-template": (1, _LINES),
    "--duplicate-stdout-filters": (1, _GREP),
    "--duplicate-stderr-filters": (1, _GREP),
    "--signals-to-handle": (
        1,
        "SIGINT, SIGTERM and SIGHUP to rdmarun end the ranks; send others to the ranks themselves, "
        "whose process ids --verbose says",
    ),
    "--numa-binding": (1, "it goes by GPUs; give --bind cores or --bind numa"),
    "--virtual-local-rank": (0, "each rank has its own LOCAL_RANK; set CUDA_VISIBLE_DEVICES by it"),
}
_NODES = re.compile(r"0*([1-9]\d{0,5})(?::0*([1-9]\d{0,5}))?")


class _NotNeeded(argparse.Action):
    def __call__(self, _parser: Any, namespace: argparse.Namespace, *_: Any) -> None:
        namespace.torchrun_idle = [*namespace.torchrun_idle, self.option_strings[0]]


class _Refused(argparse.Action):
    def __call__(self, _parser: Any, namespace: argparse.Namespace, *_: Any) -> None:
        flag = self.option_strings[0]
        namespace.torchrun_refused = namespace.torchrun_refused or f"{flag}: {REFUSED[flag][1]}"


def spelled(flag: str) -> list[str]:
    """Both ways in which torchrun has it."""
    return list(dict.fromkeys([flag, "--" + flag[2:].replace("-", "_")]))


def add_torchrun_options(parser: argparse.ArgumentParser, whole: Callable[[str], int]) -> None:
    """whole: reads a number."""
    parser.set_defaults(torchrun_idle=[], torchrun_refused="")
    about = "--nproc-per-node and these are torchrun's, and may have _ for -.\n"
    group = parser.add_argument_group("torchrun", about + list_them(NOT_NEEDED, REFUSED))
    group.add_argument(
        "--nnodes",
        type=_nodes,
        metavar="N",
        help="checks that the ranks are on so many hosts, or on MIN:MAX; -H and --hostfile name "
        "them",
    )
    group.add_argument(
        *spelled("--node-rank"), type=whole, default=0, metavar="0", help="is 0: " + ONCE
    )
    group.add_argument("--role", default="default", help="ROLE_NAME of the ranks")
    for action, words in (_NotNeeded, NOT_NEEDED), (_Refused, REFUSED):
        for flag, (values, _) in words.items():
            names = [*spelled(flag), *filter(None, [SHORT.get(flag)])]
            nargs = values or 0
            group.add_argument(*names, action=action, nargs=nargs, help=argparse.SUPPRESS)


def check_torchrun_options(args: argparse.Namespace, hosts: Sequence[Host]) -> list[str]:
    """What the user is to be told. ValueError if the job is not the one that was meant."""
    if args.torchrun_refused:
        raise ValueError(args.torchrun_refused)
    if args.node_rank > 0:
        raise ValueError(f"--node-rank {args.node_rank}: {ONCE}")
    said = about_not_needed(args.torchrun_idle, NOT_NEEDED)
    if args.nnodes is None:
        return said
    match = _NODES.fullmatch(args.nnodes)
    assert match is not None
    fewest, most = int(match[1]), int(match[2] or match[1])
    if not fewest <= len(hosts) <= most:
        names = ",".join(host.name for host in hosts)
        raise ValueError(f"--nnodes {args.nnodes}, but the ranks are on {names}: {ONCE}")
    if fewest < most:
        said.append(
            f"--nnodes {args.nnodes}: no host joins later; --min-np N says how few ranks go on"
        )
    return said


def _nodes(text: str) -> str:
    match = _NODES.fullmatch(text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of hosts, and no MIN:MAX")
    return text
