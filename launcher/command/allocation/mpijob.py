"""The hosts and slots of Kubernetes' MPIJob: the workers that the launcher's pod is told of.

mpi-operator mounts their list, and names it in the variable of the job's MPI.
Floor: launcher/command/allocation. Thread: any.
"""

from collections.abc import Mapping

from rdmacoll.launcher.base.hosts import Host, parse_hostfile

from .host_list_file import Read

FOLDER = "/etc/mpi/"  # elsewhere the file is not the operator's
VARIABLES = ("OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE")


def _variable(environ: Mapping[str, str]) -> str | None:
    return next((name for name in VARIABLES if environ.get(name, "").startswith(FOLDER)), None)


def job(environ: Mapping[str, str]) -> str | None:
    return "this MPIJob" if _variable(environ) else None


def hosts(environ: Mapping[str, str], read: Read) -> list[Host]:
    name = _variable(environ)
    assert name is not None
    path = environ[name]
    return parse_hostfile(read(path, name), f"{name} {path}")
