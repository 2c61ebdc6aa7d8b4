"""Finds the mpiexec to use and learns whose it is.

Floor: launcher/command. Thread: any.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .mpi_command import Flavour

VERSION_TIMEOUT_S = 30


class MpiError(RuntimeError):
    """There is no MPI that can start the agents; the message says what to install."""


@dataclass(frozen=True)
class Mpi:
    mpiexec: str
    flavour: Flavour
    version: str  # for people


def find_mpi(wanted: Flavour | None = None) -> Mpi:
    """The mpiexec beside the interpreter (a wheel's), else the first on PATH; or that of `wanted`.

    Wheels overwrite each other's mpiexec, so a second MPI is elsewhere, and found on PATH.
    """
    found = _all_mpiexecs()
    if not found:
        raise MpiError(
            f"no mpiexec beside {sys.executable} nor on PATH: it starts the processes of a job on "
            "several hosts; `pip install mpich` brings one, or install your system's MPI"
        )
    if wanted is None:
        return _probe(found[0])
    others = []
    for mpiexec in found:
        try:
            mpi = _probe(mpiexec)
        except MpiError as error:
            others.append(str(error))
            continue
        if mpi.flavour is wanted:
            return mpi
        others.append(f"{mpiexec} is {mpi.flavour.value}'s")
    raise MpiError(
        f"no mpiexec beside {sys.executable} nor on PATH is {wanted.value}'s ({'; '.join(others)})"
    )


def _all_mpiexecs() -> list[str]:
    folders = [str(Path(sys.executable).parent), *os.environ.get("PATH", "").split(os.pathsep)]
    found = (shutil.which("mpiexec", path=folder) for folder in folders if folder)
    return list(dict.fromkeys(mpiexec for mpiexec in found if mpiexec))


def _probe(mpiexec: str) -> Mpi:
    try:
        probe = subprocess.run(
            [mpiexec, "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MpiError(f"{mpiexec} --version: {error}; is this MPI installed whole?") from error
    text = probe.stdout + probe.stderr
    flavour = Flavour.of(text)
    if flavour is None:
        said = text.strip().partition("\n")[0] or f"nothing (status {probe.returncode})"
        raise MpiError(
            f"{mpiexec} is of no MPI that rdmarun knows (MPICH, Open MPI, Intel MPI); "
            f"its --version says: {said}"
        )
    return Mpi(mpiexec, flavour, _version(flavour, text))


def _version(flavour: Flavour, text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    if flavour is Flavour.MPICH:  # Hydra's own listing: "Version:    5.0.2"
        number = next((s.split(":", 1)[1].strip() for s in lines if s.startswith("Version:")), "?")
        return f"MPICH {number}"
    return next((line for line in lines if "MPI" in line or "RTE" in line), flavour.value)
