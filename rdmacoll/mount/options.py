"""The command line of `rdmacoll mount`. Pure.

Floor: rdmacoll/mount. Thread: any.
"""

import argparse

from ..base.arguments import seconds
from ..servers.options import address

DESCRIPTION = """\
Shows the files of a job's servers, those of rdma://, in a folder of this machine. It serves until
SIGTERM or SIGINT, until the folder is unmounted, or until the job has ended."""


def describe(parser: argparse.ArgumentParser) -> None:
    parser.description = DESCRIPTION
    parser.add_argument("folder", metavar="DIR", help="an empty folder")
    parser.add_argument(
        "--store",
        type=address,
        metavar="HOST:PORT",
        help="the job's Store: MASTER_ADDR and MASTER_PORT of its ranks (default: these)",
    )
    parser.add_argument(
        "--rdzv-id",
        metavar="ID",
        help="torchrun's, if it has one (default: TORCHELASTIC_RUN_ID, else none)",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=30.0,
        help="seconds after which an operation ends with an error, as servers do not answer (30)",
    )
