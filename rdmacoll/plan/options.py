"""The command line of `rdmacoll plan`: argv -> Options, checked whole before anything is asked.

What only the compiled module knows (hosts, collectives, algorithms) it checks itself.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from rdmacoll.base import files
from rdmacoll.base.byte_sizes import parse_size
from rdmacoll.bench.options import BadArgument, drawable, writable

DESCRIPTION = """\
Shows which plan a collective takes on hosts that need not be there: what each algorithm sends and
how long it may take, which one is taken, and what its ranks do. Times are predictions. Which one is
taken does not depend on the root."""
EPILOG = """\
  rdmacoll plan --hosts 2x8 --bytes 64M
  rdmacoll plan --hosts 3+1 --collective broadcast --bytes 4K --algorithm leaders --steps
  rdmacoll plan --hosts 4x2 --bytes 1M --svg plan.svg
  RDMACOLL_DETERMINISTIC=1 rdmacoll plan --hosts 512x8 --bytes 1G

Variables that say what is taken are heeded as in a job: RDMACOLL_ALGO, RDMACOLL_TUNING,
RDMACOLL_DETERMINISTIC and RDMACOLL_BLOCK_BYTES. docs/ALGORITHMS.md says what the columns mean."""

TUNING_BYTES_MOST = 1 << 20  # as in csrc/base/limits.h
WITHOUT_BYTES = "barrier"
WITH_ROOT = ("broadcast", "reduce", "gather", "scatter")


@dataclass(frozen=True)
class Options:
    hosts: str
    collective: str
    bytes: int
    algorithm: str | None  # to be shown instead of the one that is taken
    tuning: Path | None
    table: str  # what is in that file
    steps: bool
    rank: int | None  # whose steps; None: everybody's
    root: int
    json: bool
    svg: Path | None


def describe(parser: argparse.ArgumentParser) -> None:
    """Makes it the parser of this command."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add(
        "--hosts",
        required=True,
        metavar="SHAPE",
        help="2x8: 2 hosts of 8 ranks; 3+1: one of 3 and one of 1; 2x4+1",
    )
    add("--collective", default="all_reduce", metavar="NAME", help="default: %(default)s")
    add(
        "--bytes",
        metavar="SIZE",
        help="64M: of the buffer, or of all blocks together; all_to_all: of one rank's blocks",
    )
    add("--algorithm", metavar="NAME", help="show this one's plan, not that of the one taken")
    add("--tuning", type=Path, metavar="FILE", help="as RDMACOLL_TUNING=FILE, and instead of it")
    add("--root", type=int, metavar="R", help="of broadcast, reduce, gather, scatter (default: 0)")
    add("--steps", action="store_true", help="all steps of every rank, up to 64 ranks")
    add("--rank", type=int, metavar="R", help="all steps of this rank alone")
    add("--svg", type=Path, metavar="FILE", help="draw it there, up to 8 hosts and 64 ranks")
    add("--json", action="store_true", help="the same for programs")


def checked(arguments: argparse.Namespace) -> Options:
    """BadArgument says what is wrong with them."""
    if arguments.svg is not None:
        drawable("--svg", arguments.svg, (".svg",))
        writable("--svg", arguments.svg)
    return Options(
        hosts=arguments.hosts,
        collective=arguments.collective,
        bytes=_bytes(arguments.bytes, arguments.collective),
        algorithm=arguments.algorithm,
        tuning=arguments.tuning,
        table=_table(arguments.tuning),
        steps=arguments.steps or arguments.rank is not None,
        rank=arguments.rank,
        root=_root(arguments.root, arguments.collective),
        json=arguments.json,
        svg=arguments.svg,
    )


def _bytes(text: str | None, collective: str) -> int:
    if collective == WITHOUT_BYTES:
        if text is not None:
            raise BadArgument(f"--bytes {text}: a {collective} moves none; leave it out")
        return 0
    if text is None:
        raise BadArgument("how many bytes? give --bytes 64M")
    try:
        return parse_size(text)
    except ValueError as error:
        raise BadArgument(f"--bytes {text}: {error}") from error


def _root(root: int | None, collective: str) -> int:
    if root is not None and collective not in WITH_ROOT:
        raise BadArgument(f"--root {root}: {collective} has none; leave it out")
    return root or 0


def _table(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return files.read(path, TUNING_BYTES_MOST).decode(errors="replace")
    except OSError as error:
        raise BadArgument(
            f"--tuning {path}: {error.strerror}; name a file that `rdmacoll tune` has written"
        ) from error
