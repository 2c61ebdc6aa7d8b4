"""The command line of `rdmacoll bench transfer`, checked whole before anything starts. No torch."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from ..options import at_least, peers_of, sizes_of, writable

DESCRIPTION = """\
One tensor from a process to a given tensor in another one, until the first knows that it is there:
rdmacoll.remote beside other ways, each in two processes of its own, in turns of one run."""
EPILOG = """\
  rdmacoll bench transfer --vs grpc,torch-rpc,gloo
  rdmacoll bench transfer --vs grpc --sizes 1K,64K,64M --rounds 21 --json result.json

docs/BENCHMARK.md says what is measured, and what the columns mean."""

PROG = "rdmacoll bench transfer"
DTYPE = "uint8"
# Ours first: the others are compared with it. Then the same in two processes more, which shows what
# chance alone makes of the ratio; from an ordinary tensor; and shared memory with a flag.
ALWAYS = ("rdma", "rdma-again", "rdma-ordinary", "flag")
PEERS = ("grpc", "torch-rpc", "gloo")
PEER_HELP = "grpc (grpcio, the best of three forms), torch-rpc (TensorPipe), gloo (send and recv)"


@dataclass(frozen=True)
class Options:
    ways: list[str]
    sizes_bytes: list[int]
    rounds: int
    json: Path | None


def describe(parser: argparse.ArgumentParser) -> None:
    """Makes it the parser of this command."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--vs", default="", metavar="WAY,...", help="compare with these: " + PEER_HELP)
    add(
        "--sizes",
        default="1K:64M:4",
        metavar="FROM:TO:FACTOR",
        help="bytes, or a list such as 1K,64K,1M (default: %(default)s)",
    )
    add("--rounds", type=int, default=9, metavar="N", help="turns of each way (default: 9)")
    add("--json", type=Path, metavar="FILE", help="write the results there too")


def checked(arguments: argparse.Namespace) -> Options:
    """BadArgument says what is wrong with them."""
    peers = peers_of(arguments.vs, PEERS)
    at_least("--rounds", arguments.rounds, 1)
    writable("--json", arguments.json)
    return Options(
        ways=[*ALWAYS, *peers],
        sizes_bytes=list(dict.fromkeys(sizes_of(arguments.sizes, DTYPE))),
        rounds=arguments.rounds,
        json=arguments.json,
    )
