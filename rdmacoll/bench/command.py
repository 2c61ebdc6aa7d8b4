"""`rdmacoll bench`, the command: starts the ranks; where a launcher has done so, it is one."""

import os
from collections.abc import Sequence

from rdmacoll.launcher.mpi_find import MpiError

from .launch import launch, launch_with_mpi
from .options import Options


def bench(options: Options, argv: Sequence[str]) -> None:
    """ValueError names what is wrong and the remedy. `argv` is what the options were made from."""
    if "RANK" in os.environ:
        _require_job(options)
        from .run import run

        run(options)
        return
    if options.np is None:
        raise ValueError("how many ranks? give -np N")
    if "mpi" not in options.systems:
        launch(argv, options.np)
    try:
        launch_with_mpi(argv, options.np, options.mpi)
    except MpiError as error:
        raise ValueError(str(error)) from error


def _require_job(options: Options) -> None:
    ranks = int(os.environ["WORLD_SIZE"])
    if "mpi" in options.systems:
        raise ValueError(
            "--vs mpi: the ranks of this job are no MPI processes, for rdmarun and torchrun keep "
            f"MPI out of them; start it outside of a job: rdmacoll bench -np {ranks} --vs mpi"
        )
    if options.np not in (None, ranks):
        raise ValueError(f"-np {options.np}: this job has {ranks} ranks already; leave -np out")
    if ranks < 2:
        raise ValueError("this job has 1 rank, and a collective takes at least 2; start more")
