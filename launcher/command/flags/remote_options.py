"""How rdmarun is told to reach other hosts: the options of ssh and mpiexec, by horovodrun's names.

They become the variables in which each MPI takes them, for one of them is the mpiexec at hand. The
job's key is brought to the hosts by the same program (keys/remote_shell.py).
Floor: launcher/command/flags. Thread: any.
"""

import argparse
import os
import shlex
from collections.abc import Mapping

from rdmacoll.launcher.keys.remote_shell import SHELLS

PORTS = range(1, 65536)


def add_remote_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-p", "--ssh-port", type=_port, metavar="PORT", help="the port of ssh on all hosts")
    add(
        "-i",
        "--ssh-identity-file",
        type=_identity,
        metavar="FILE",
        help="the private key for ssh to other hosts",
    )
    add(
        "--launcher-exec",
        type=_word,
        metavar="PROGRAM",
        help="what is called in place of ssh: as PROGRAM HOST COMMAND, with options before",
    )
    add(
        "--mpi-args",
        type=_split,
        default=[],
        metavar='="ARGS"',
        help="more arguments for mpiexec, which starts the agents of a job on several hosts",
    )
    add(
        "--network-interfaces",
        type=_word,
        metavar="NAMES",
        help="the interfaces that agents talk over, and data where no RDMA device carries it: "
        "eth0,eth1 (what they begin with), =eth0 (whole names), ^docker0 (all but these); sets "
        "RDMACOLL_SOCKET_IFNAME",
    )


def network_environment(args: argparse.Namespace) -> dict[str, str]:
    """For the ranks and for agent 0, which listens as they do."""
    names = args.network_interfaces
    return {} if names is None else {"RDMACOLL_SOCKET_IFNAME": names}


def remote_environment(args: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, str]:
    """For mpiexec, and for what brings the key. Whoever says how ssh is called wants ssh, also
    where mpiexec would take the batch system's own program."""
    port = [] if args.ssh_port is None else ["-p", str(args.ssh_port)]
    identity = [] if args.ssh_identity_file is None else ["-i", args.ssh_identity_file]
    ours = [*port, *identity]
    theirs = next(filter(None, (environ.get(shell.arguments) for shell in SHELLS)), "")
    env: dict[str, str] = {}
    for shell in SHELLS:
        if ours:
            env[shell.arguments] = " ".join([*theirs.split(), *ours])
        if args.launcher_exec is not None:
            env[shell.program] = args.launcher_exec
        if ours or args.launcher_exec is not None:
            env[shell.launcher] = shell.ssh
    return env


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) in PORTS):
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 1 to 65535")
    return int(text)


def _identity(text: str) -> str:
    path = os.path.abspath(_word(text))
    if not os.path.isfile(path):
        raise argparse.ArgumentTypeError(f"{text}: there is no such file")
    return _word(path)


def _word(text: str) -> str:
    """mpiexec takes its variables apart at blanks, and knows no quotation."""
    if not text or len(text.split()) != 1 or text.strip() != text:
        raise argparse.ArgumentTypeError(f"{text!r} is not one word without blanks")
    return text


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be split as a shell does: {error}"
        ) from None
