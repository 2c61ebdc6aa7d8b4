"""`rdmacoll bench transfer`, the command: starts two processes for each way; there, it is one."""

import os
from collections.abc import Sequence

from ..launch import launch
from ..options import BadArgument
from .options import Options


def transfer(options: Options, argv: Sequence[str]) -> None:
    """`argv` is what the options were made from; BadArgument, if they do not fit this place."""
    processes = 2 * len(options.ways)
    if "RANK" not in os.environ:
        launch("bench", ["transfer", *argv], processes)
        return
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks != processes:
        raise BadArgument(
            f"these ways take {processes} processes, and this job has {ranks} ranks; call it "
            "outside of a job, where it starts them itself"
        )
    from .run import run

    run(options)
