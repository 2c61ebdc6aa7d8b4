"""`rdmacoll bench`, the command: starts the ranks; where a launcher has done so, it is one."""

import os
from collections.abc import Sequence

from rdmacoll.launcher.command.mpi_find import MpiError

from .launch import launch, launch_with_mpi
from .options import BadArgument, Options


def bench(options: Options, argv: Sequence[str]) -> None:
    """`argv` is what the options were made from; BadArgument, if they do not fit this place."""
    if "RANK" in os.environ:
        _require_no_mpi(options)
        require_job(options.np)
        from .run import run

        run(options)
        return
    if options.np is None:
        raise BadArgument("how many ranks? give -np N")
    if "mpi" not in options.systems:
        launch("bench", argv, options.np)
        return
    try:
        launch_with_mpi(argv, options.np, options.mpi)
    except MpiError as error:
        raise BadArgument(str(error)) from error


def started(word: str, argv: Sequence[str], processes: int) -> bool:
    """`rdmacoll bench <word>`, which takes so many processes: whether this is one of them. If not,
    it starts them. BadArgument in a job of another size."""
    if "RANK" not in os.environ:
        launch("bench", [word, *argv], processes)
        return False
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks != processes:
        raise BadArgument(
            f"these ways take {processes} processes, and this job has {ranks} ranks; call it "
            "outside of a job, where it starts them itself"
        )
    return True


def _require_no_mpi(options: Options) -> None:
    if "mpi" in options.systems:
        ranks = os.environ.get("WORLD_SIZE", "1")
        raise BadArgument(
            "--vs mpi: the ranks of this job are no MPI processes, for rdmarun and torchrun keep "
            f"MPI out of them; start it outside of a job: rdmacoll bench -np {ranks} --vs mpi"
        )


def require_job(np: int | None) -> None:
    """That the job whose rank this is suits a measurement; `rdmacoll tune` asks it, too."""
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if np not in (None, ranks):
        raise BadArgument(f"-np {np}: this job has {ranks} ranks already; leave -np out")
    if ranks < 2:
        raise BadArgument("this job has 1 rank, and a collective takes at least 2; start more")
