"""The command line of `rdmacoll bench`: argv -> Options, checked whole before anything starts.

`rdmacoll tune` and `rdmacoll plan` check their own with the same functions.
"""

import argparse
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rdmacoll.base.files import is_device, refusal

from .operations import OPERATIONS, InPlace, elements_of
from .sizes import parse_sizes

DESCRIPTION = """\
Time and bandwidth of collectives by size, in the manner of nccl-tests, checked for correctness, and
beside other systems: those run in the same processes, in turns of one run."""
EPILOG = """\
  rdmacoll bench -np 2
  rdmacoll bench -np 2 all --vs gloo,mpi --json result.json
  rdmacoll bench -np 4 all_gather --sizes 1K:16M:4 --dtype bfloat16 --plot all_gather.svg
  rdmarun -np 8 -H node1:4,node2:4 -m rdmacoll bench all_reduce --vs gloo
  rdmacoll bench transfer --help     one tensor to a place in another process, beside gRPC
  rdmacoll bench models --help       models trained with a parameter holder, beside gRPC

docs/BENCHMARK.md says what the columns mean."""

COMMANDS = ("transfer", "models")  # of their own, behind the word bench
PEERS = ("gloo", "mpi", "fake")
PEER_HELP = "gloo, mpi, and fake: torch alone, the same call on a backend that does nothing"
MPIS = ("mpich", "openmpi", "impi")
MEMORIES = ("ordinary", "heap")
REDUCTIONS = ("sum", "product", "min", "max")
ELEMENT_BYTES = {
    "float32": 4,
    "float64": 8,
    "float16": 2,
    "bfloat16": 2,
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "int64": 8,
}
NOT_IN_MPI = ("float16", "bfloat16")
PLOT_SUFFIXES = (".png", ".svg")


class BadArgument(Exception):
    """The message names the argument, its value and the remedy."""


@dataclass(frozen=True)
class Options:
    np: int | None
    operations: list[str]
    sizes_bytes: list[int]
    dtype: str
    reduction: str
    in_place: bool
    memory: str
    systems: list[str]  # the first is compared with each of the others
    mpi: str | None
    rounds: int
    check: bool
    json: Path | None
    plot: Path | None

    def elements(self, operation: str, ranks: int) -> list[int]:
        """How many the sizes are, each number once."""
        counts = (
            elements_of(OPERATIONS[operation], size, ELEMENT_BYTES[self.dtype], ranks)
            for size in self.sizes_bytes
        )
        return list(dict.fromkeys(counts))


def describe(parser: argparse.ArgumentParser) -> None:
    """Makes it the parser of this command."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add(
        "operations",
        nargs="*",
        metavar="operation",
        help=f"of {', '.join(OPERATIONS)}; or all (default: all_reduce)",
    )
    add("-np", type=int, metavar="N", help="ranks to start; inside a job its ranks are taken")
    add(
        "--sizes",
        default="4:64M:4",
        metavar="FROM:TO:FACTOR",
        help="bytes, or a list such as 4,64K,1M (default: %(default)s)",
    )
    add("--dtype", default="float32", help=f"of {', '.join(ELEMENT_BYTES)} (default: %(default)s)")
    add("--op", default="sum", help=f"of {', '.join(REDUCTIONS)} (default: %(default)s)")
    add("--in-place", action="store_true", help="all_gather, reduce_scatter: in one tensor")
    add("--memory", default="ordinary", help=f"of {', '.join(MEMORIES)} (default: %(default)s)")
    add("--vs", default="", metavar="SYSTEM,...", help="compare with these: " + PEER_HELP)
    add("--mpi", help=f"whose MPI: {', '.join(MPIS)} (default: whichever mpiexec is found first)")
    add("--rounds", type=int, default=9, metavar="N", help="turns of each system (default: 9)")
    add("--no-check", dest="check", action="store_false", help="do not look at the results")
    add("--json", type=Path, metavar="FILE", help="write the results there too")
    add("--plot", type=Path, metavar="FILE", help="draw them there; .png or .svg")


def checked(arguments: argparse.Namespace) -> Options:
    """BadArgument says what is wrong with them."""
    operations = arguments.operations or ["all_reduce"]
    operations = list(OPERATIONS) if operations == ["all"] else operations
    for operation in operations:
        if operation in COMMANDS:
            raise BadArgument(
                f"operation {operation!r}: it comes first: rdmacoll bench {operation} ..."
            )
        among("operation", operation, (*OPERATIONS, "all (alone)"))
    among("--dtype", arguments.dtype, ELEMENT_BYTES)
    among("--op", arguments.op, REDUCTIONS)
    among("--memory", arguments.memory, MEMORIES)
    peers = peers_of(arguments.vs, PEERS)
    if arguments.mpi is not None:
        among("--mpi", arguments.mpi, MPIS)
    if arguments.mpi is not None and "mpi" not in peers:
        raise BadArgument(f"--mpi {arguments.mpi}: MPI is not measured; add --vs mpi")
    if arguments.np is not None and arguments.np < 2:
        raise BadArgument(f"-np {arguments.np}: a collective takes at least 2 ranks")
    at_least("--rounds", arguments.rounds, 1)
    if "mpi" in peers and arguments.dtype in NOT_IN_MPI:
        raise BadArgument(
            f"--dtype {arguments.dtype}: MPI has no such type; take another, or mpi out of --vs"
        )
    if arguments.in_place:
        _in_place(operations, peers)
    writable("--json", arguments.json)
    writable("--plot", arguments.plot)
    if arguments.plot is not None:
        _plottable(arguments.plot, operations)
    return Options(
        np=arguments.np,
        operations=operations,
        sizes_bytes=sizes_of(arguments.sizes, arguments.dtype),
        dtype=arguments.dtype,
        reduction=arguments.op,
        in_place=arguments.in_place,
        memory=arguments.memory,
        systems=["rdma", *peers],
        mpi=arguments.mpi,
        rounds=arguments.rounds,
        check=arguments.check,
        json=arguments.json,
        plot=arguments.plot,
    )


def among(name: str, value: str, known: Sequence[str] | dict[str, int]) -> None:
    if value not in known:
        raise BadArgument(f"{name} {value!r}: unknown; there are {', '.join(known)}")


def peers_of(text: str, known: Sequence[str]) -> list[str]:
    """Those that --vs names, each once."""
    peers = [peer for peer in text.split(",") if peer]
    for peer in peers:
        among("--vs", peer, known)
    if "grpc" in peers and importlib.util.find_spec("grpc") is None:
        raise BadArgument("--vs grpc: needs grpcio; pip install 'rdmacoll[bench]'")
    return list(dict.fromkeys(peers))


def at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise BadArgument(f"{name} {value}: give {least} or more")


def sizes_of(text: str, dtype: str) -> list[int]:
    try:
        sizes = parse_sizes(text)
    except ValueError as error:
        raise BadArgument(f"--sizes {text}: {error}") from error
    if min(sizes) < ELEMENT_BYTES[dtype]:
        raise BadArgument(
            f"--sizes {text}: {min(sizes)} B are less than one element of {dtype}; "
            f"begin at {ELEMENT_BYTES[dtype]}"
        )
    return sizes


def writable(name: str, path: Path | None) -> None:
    if path is None:
        return
    if not is_device(path):
        _placeable(name, path)
    if why := refusal(path):
        raise BadArgument(f"{name} {path}: {why}")


def _placeable(name: str, path: Path) -> None:
    if not path.parent.is_dir():
        raise BadArgument(f"{name} {path}: there is no folder {path.parent}; make it")
    # A new file is made beside the old one and takes its place, so the folder must let it, too.
    needed = [path.parent, path] if path.exists() else [path.parent]
    if path.is_dir() or not all(os.access(each, os.W_OK) for each in needed):
        raise BadArgument(f"{name} {path}: it cannot be written; name another file")


def _in_place(operations: Sequence[str], peers: Sequence[str]) -> None:
    never = [name for name in operations if OPERATIONS[name].in_place is InPlace.NEVER]
    if never:
        raise BadArgument(f"--in-place: {', '.join(never)} cannot; leave the one or the other out")
    if "reduce_scatter" in operations and "mpi" in peers:
        raise BadArgument(
            "--in-place: MPI leaves the result of reduce_scatter in another part of the tensor "
            "than c10d does; leave reduce_scatter out, or mpi out of --vs"
        )


def _plottable(path: Path, operations: Sequence[str]) -> None:
    if list(operations) == ["barrier"]:
        raise BadArgument(f"--plot {path}: a barrier has no size to be drawn over; leave it out")
    drawable("--plot", path, PLOT_SUFFIXES)


def drawable(name: str, path: Path, suffixes: Sequence[str]) -> None:
    if path.suffix not in suffixes:
        raise BadArgument(f"{name} {path}: the name must end in {' or '.join(suffixes)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise BadArgument(f"{name} {path}: needs matplotlib; pip install 'rdmacoll[bench]'")
