"""`rdmacoll tune`, the command: starts the ranks; where a launcher has done so, it is one."""

import os
from collections.abc import Sequence

from rdmacoll.bench.command import require_job
from rdmacoll.bench.launch import launch
from rdmacoll.bench.options import BadArgument

from .options import Options


def tune(options: Options, argv: Sequence[str]) -> None:
    """`argv` is what the options were made from; BadArgument, if they do not fit this place."""
    if "RANK" in os.environ:
        require_job(options.np)
        from .run import run

        run(options)
        return
    if options.np is None:
        raise BadArgument("how many ranks? give -np N")
    launch("tune", argv, options.np)
