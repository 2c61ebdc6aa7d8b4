"""The command line of `rdmacoll bench models`, checked whole before anything starts. No torch."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from ..options import PLOT_SUFFIXES, among, at_least, drawable, peers_of, writable

DESCRIPTION = """\
Models trained by workers with a parameter holder: each step a worker gets all parameters, computes,
and hands in all gradients. rdmacoll.remote beside other ways, in turns of one run."""
EPILOG = """\
  rdmacoll bench models --vs grpc,torch-rpc
  rdmacoll bench models --vs grpc --models fcn-5,lstm --rounds 21 --json result.json
  rdmacoll bench models --vs grpc,torch-rpc --plot models.svg

docs/BENCHMARK.md says what is measured, and what the columns mean."""

PROG = "rdmacoll bench models"
OURS = "rdma"  # the others are compared with it
PEERS = ("grpc", "torch-rpc")
PEER_HELP = "grpc (grpcio, the quickest of three forms), torch-rpc (TensorPipe)"
MODELS = ("fcn-5", "vgg-head", "lstm", "inception")  # by bytes per computation


@dataclass(frozen=True)
class Options:
    ways: list[str]
    models: list[str]
    workers: int
    rounds: int
    json: Path | None
    plot: Path | None

    @property
    def processes_of_a_way(self) -> int:
        return 1 + self.workers


def describe(parser: argparse.ArgumentParser) -> None:
    """Makes it the parser of this command."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--vs", default="", metavar="WAY,...", help="compare with these: " + PEER_HELP)
    add(
        "--models",
        default=",".join(MODELS),
        metavar="MODEL,...",
        help="of those, by falling bytes per computation (default: %(default)s)",
    )
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="of each way; give each and the holder a core (default: %(default)s)",
    )
    add("--rounds", type=int, default=9, metavar="N", help="turns of each way (default: 9)")
    add("--json", type=Path, metavar="FILE", help="write the results there too")
    add("--plot", type=Path, metavar="FILE", help="draw them there; .png or .svg")


def checked(arguments: argparse.Namespace) -> Options:
    """BadArgument says what is wrong with them."""
    peers = peers_of(arguments.vs, PEERS)
    models = arguments.models.split(",")
    for model in models:
        among("--models", model, MODELS)
    at_least("--workers", arguments.workers, 1)
    at_least("--rounds", arguments.rounds, 1)
    writable("--json", arguments.json)
    writable("--plot", arguments.plot)
    if arguments.plot is not None:
        drawable("--plot", arguments.plot, PLOT_SUFFIXES)
    return Options(
        ways=[OURS, *peers],
        models=list(dict.fromkeys(models)),
        workers=arguments.workers,
        rounds=arguments.rounds,
        json=arguments.json,
        plot=arguments.plot,
    )
