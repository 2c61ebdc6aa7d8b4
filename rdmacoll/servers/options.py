"""The command line of `rdmacoll ps`. Pure.

Floor: rdmacoll/servers. Thread: any.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from rdmacoll.base.arguments import seconds
from rdmacoll.base.byte_sizes import parse_size

MOST_SERVERS = 1024  # of a job
JOINS = "that joins"  # in the place of a server's number
NO_RUN_ID = "none"  # torchrun's own, where it is given none

DESCRIPTION = "Parameter servers: starts one by hand, and shows what those of a job do."
SERVE = """\
Runs a server of a job that rdmarun has not started: under torchrun, say, or srun. It serves until
SIGTERM or SIGINT, or until the job's Store is gone. The job's secret is that of the ranks: the file
that RDMACOLL_SECRET_FILE names, else what is drawn in the Store."""
SERVE_EPILOG = """\
  torchrun --nproc-per-node 2 --master-port 29500 train.py
  rdmacoll ps serve --number 0 --servers 2 --store 127.0.0.1:29500
  rdmacoll ps serve --number 1 --servers 2 --store 127.0.0.1:29500
  rdmacoll ps serve --join --store 127.0.0.1:29500"""
STATUS = """\
Shows the servers and tables of all jobs of yours that have servers on this host. The exit status is
1 if there are none, or if one did not answer."""


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def describe(parser: argparse.ArgumentParser) -> None:
    parser.description = DESCRIPTION
    commands = parser.add_subparsers(dest="what", required=True, metavar="command")
    serve = commands.add_parser(
        "serve",
        help="run a server of a job",
        description=SERVE,
        epilog=SERVE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = serve.add_argument
    add("--number", type=_whole, metavar="K", help="of this server: 0 to N - 1")
    add("--servers", type=_servers, metavar="N", help="how many the job begins with")
    add(
        "--join",
        action="store_true",
        help="one more server than the job began with: it gets its share of the tables; in the "
        "place of --number and --servers",
    )
    _add_store(serve, "the job's Store: MASTER_ADDR and MASTER_PORT of its ranks (default: these)")
    add("--memory", type=_memory, metavar="SIZE", help="for its tables, 8G or 512M (default: half)")
    add(
        "--replicas",
        type=int,
        choices=(1, 2),
        help="how many servers keep each part of the tables; with 1 a lost server takes its part "
        "along (default: 2; with --join: as the others)",
    )
    add("--timeout", type=seconds, default=300.0, help="seconds to wait for the Store (300)")
    status = commands.add_parser("status", help="show what servers do", description=STATUS)
    status.add_argument("--json", action="store_true", help="the same for programs")
    _add_store(status, "ask this Store, not the servers of this host; not for jobs of rdmarun")
    status.add_argument(
        "--timeout", type=seconds, default=5.0, help="the longest wait for an answer (default 5)"
    )


def _add_store(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--store", type=address, metavar="HOST:PORT", help=what)
    parser.add_argument(
        "--rdzv-id",
        metavar="ID",
        help="torchrun's, if it has one (default: TORCHELASTIC_RUN_ID, else none)",
    )


def address(text: str) -> Address:
    """HOST:PORT, also [::1]:PORT."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT, as 10.0.0.1:29500")
    return Address(host, int(port))


def store_of_ranks(environ: Mapping[str, str]) -> Address:
    """Raises ValueError where the variables of ranks name none."""
    host, port = environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", "")
    try:
        return address(f"[{host}]:{port}")
    except argparse.ArgumentTypeError:
        raise ValueError(
            f"MASTER_ADDR={host!r} and MASTER_PORT={port!r} name no Store: give --store HOST:PORT"
        ) from None


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text[:5]) >= MOST_SERVERS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to {MOST_SERVERS - 1}")
    return int(text)


def _servers(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:5]) <= MOST_SERVERS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MOST_SERVERS}")
    return int(text)


def _memory(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size == 0:
        raise argparse.ArgumentTypeError("a server needs memory; give 8G or 512M")
    return size
