"""The command line of `rdmacoll tune`: argv -> Options, checked whole before anything starts."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from rdmacoll.bench.operations import OPERATIONS, elements_of
from rdmacoll.bench.options import ELEMENT_BYTES, BadArgument, among, sizes_of, writable

DESCRIPTION = """\
Measures the algorithms of each collective side by side, in turns of one run, and writes a table of
which one is quickest up to which size. Jobs of as many ranks take it with RDMACOLL_TUNING=FILE.
Over hosts of several ranks it also says what links cost, for the forecasts of `rdmacoll plan`."""
EPILOG = """\
  rdmacoll tune -np 2
  rdmacoll tune -np 4 --collectives all_reduce,broadcast --sizes 8:64M:2 --out node.tuning
  rdmarun -np 8 -H node1:4,node2:4 -m rdmacoll tune
  RDMACOLL_TUNING=$PWD/tuning.txt rdmarun -np 2 train.py

docs/ALGORITHMS.md says what is in the file, and that several can be one."""

DTYPE = "float32"
# Those that have more than one algorithm: everywhere, and over hosts of several ranks.
EVERYWHERE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")
COLLECTIVES = (*EVERYWHERE, "all_to_all", "gather", "scatter")


@dataclass(frozen=True)
class Options:
    np: int | None
    collectives: list[str]
    sizes_bytes: list[int]  # ascending
    rounds: int
    out: Path

    def elements(self, collective: str, ranks: int) -> list[int]:
        """How many the sizes are, each number once."""
        operation, element_bytes = OPERATIONS[collective], ELEMENT_BYTES[DTYPE]
        counts = (elements_of(operation, size, element_bytes, ranks) for size in self.sizes_bytes)
        return list(dict.fromkeys(counts))


def describe(parser: argparse.ArgumentParser) -> None:
    """Makes it the parser of this command."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("-np", type=int, metavar="N", help="ranks to start; inside a job its ranks are taken")
    add(
        "--collectives",
        default=",".join(COLLECTIVES),
        metavar="NAME,...",
        help="default: %(default)s",
    )
    add(
        "--sizes",
        default="8:16M:2",
        metavar="FROM:TO:FACTOR",
        help="bytes, or a list such as 8,64K,1M; above the last its choice goes on "
        "(default: %(default)s)",
    )
    add("--rounds", type=int, default=7, metavar="N", help="turns of each algorithm (default: 7)")
    add(
        "--out",
        type=Path,
        default=Path("tuning.txt"),
        metavar="FILE",
        help="where to write the table (default: %(default)s)",
    )


def checked(arguments: argparse.Namespace) -> Options:
    """BadArgument says what is wrong with them."""
    collectives = list(dict.fromkeys(arguments.collectives.split(",")))
    for collective in collectives:
        among("--collectives", collective, COLLECTIVES)
    if arguments.np is not None and arguments.np < 2:
        raise BadArgument(f"-np {arguments.np}: a collective takes at least 2 ranks")
    if arguments.rounds < 1:
        raise BadArgument(f"--rounds {arguments.rounds}: give 1 or more")
    writable("--out", arguments.out)
    return Options(
        np=arguments.np,
        collectives=collectives,
        sizes_bytes=sorted(sizes_of(arguments.sizes, DTYPE)),
        rounds=arguments.rounds,
        out=arguments.out,
    )
