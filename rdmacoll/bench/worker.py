"""A rank that mpiexec has started: an MPI process, and under the same number one of torch's ranks.

mpiexec -n 2 python -m rdmacoll.bench.worker [arguments of rdmacoll bench]
"""

import argparse
import os
import secrets
import signal
import sys
import tempfile
import time
import traceback

from rdmacoll.launcher.base.processes import die_with_parent

from .options import Options, checked, describe

LOOPBACK = "127.0.0.1"
GRACE_S = 0.5  # for mpiexec to read what was said: what it has not when we abort is lost


def main() -> None:
    die_with_parent(signal.SIGKILL, os.getppid())
    parser = argparse.ArgumentParser()
    describe(parser)
    options = checked(parser.parse_args())
    from .frame.job import watch

    watch()  # from here on: MPI_Init waits for the other ranks, too
    from mpi4py import MPI

    try:
        _run(options)
    except BaseException as error:  # or this rank would wait in MPI_Finalize for all
        if not isinstance(error, SystemExit):
            traceback.print_exc()
        elif isinstance(error.code, str):  # else it was said already
            print(error.code, file=sys.stderr, flush=True)
        time.sleep(GRACE_S)
        MPI.COMM_WORLD.Abort(1)


def _run(options: Options) -> None:
    from mpi4py import MPI
    from torch.distributed import TCPStore

    from .mpi_calls import mpi_version
    from .run import run

    world = MPI.COMM_WORLD
    if world.size != options.np:
        sys.exit(
            f"rdmacoll bench: mpiexec has started {options.np} ranks, but {mpi_version()}, which "
            f"mpi4py has loaded, sees {world.size}: it is of another MPI than mpiexec; set "
            "MPI4PY_LIBMPI to mpiexec's own libmpi.so"
        )
    store = (
        TCPStore(LOOPBACK, 0, is_master=True, wait_for_workers=False) if not world.rank else None
    )
    port = world.bcast(store.port if store else None)
    os.environ.update(
        RANK=str(world.rank),
        WORLD_SIZE=str(world.size),
        LOCAL_RANK=str(world.rank),
        MASTER_ADDR=LOOPBACK,
        MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE="True",  # the store is there already
    )
    with tempfile.NamedTemporaryFile(prefix="rdmacoll-bench-") as file:
        file.write(secrets.token_hex(32).encode())
        file.flush()
        # mpiexec gives the job no secret, as rdmarun would; all take rank 0's.
        os.environ.setdefault("RDMACOLL_SECRET_FILE", world.bcast(file.name))
        run(options)
        world.Barrier()  # until then rank 0 must keep the store and the file


if __name__ == "__main__":
    main()
