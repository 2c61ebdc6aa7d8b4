"""`rdmacoll bench models`, the command: starts the processes of each way; there, it is one."""

from collections.abc import Sequence

from ..command import started
from .options import Options


def models(options: Options, argv: Sequence[str]) -> None:
    """`argv` is what the options were made from; BadArgument, if they do not fit this place."""
    if started("models", argv, options.processes_of_a_way * len(options.ways)):
        from .run import run

        run(options)
