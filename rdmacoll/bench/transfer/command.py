"""`rdmacoll bench transfer`, the command: starts two processes for each way; there, it is one."""

from collections.abc import Sequence

from ..command import started
from .options import Options


def transfer(options: Options, argv: Sequence[str]) -> None:
    """`argv` is what the options were made from; BadArgument, if they do not fit this place."""
    if started("transfer", argv, 2 * len(options.ways)):
        from .run import run

        run(options)
