"""Finds the allocation that rdmarun runs in, by its environment. The table of all sources.

Each source says by which name people know the job (None: it is none of its own), and which hosts
with how many slots it has. A wrong environment is a HostError that names the variable.
Floor: launcher/command/allocation. Thread: any.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from rdmacoll.launcher.base.hosts import Host

from . import lsf, mpijob, pbs, slurm
from .host_list_file import Read, read_host_list


@dataclass(frozen=True)
class Allocation:
    job: str  # for people: "Slurm job 123"
    hosts: Callable[[], list[Host]]  # raises HostError


SOURCES = (
    (slurm.job, slurm.hosts),
    (pbs.job, pbs.hosts),
    (lsf.job, lsf.hosts),
    (mpijob.job, mpijob.hosts),
)


def find_allocation(environ: Mapping[str, str], read: Read = read_host_list) -> Allocation | None:
    """The first source counts: Slurm also sets variables of PBS for those who ask for them."""
    for job, hosts in SOURCES:
        if (name := job(environ)) is not None:
            return Allocation(name, partial(hosts, environ, read))
    return None
