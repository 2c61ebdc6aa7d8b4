"""The command line that starts one agent per host, for each MPI. Pure; golden tests pin it.

Floor: launcher/command. Thread: any.
"""

from collections.abc import Sequence
from enum import Enum

from rdmacoll.launcher.base.hosts import Host

# Agents say little, and the fabric is the ranks': UCX and libfabric would take it for them. Over
# Soft-RoCE one agent then spun for ever after the other had ended, in the second of two launches.
OVER_TCP = {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"}


class Flavour(Enum):
    MPICH = "MPICH"
    OPEN_MPI = "Open MPI"
    INTEL_MPI = "Intel MPI"

    @staticmethod
    def of(version_text: str) -> "Flavour | None":
        """Reads what `mpiexec --version` printed."""
        if "Open MPI" in version_text or "OpenRTE" in version_text or "PRRTE" in version_text:
            return Flavour.OPEN_MPI
        if "Intel(R) MPI" in version_text:
            return Flavour.INTEL_MPI
        return Flavour.MPICH if "HYDRA" in version_text else None


def mpi_command(
    mpiexec: str,
    flavour: Flavour,
    hosts: Sequence[Host],
    agent: Sequence[str],
    root: bool,
    more: Sequence[str] = (),
    has_others: bool = False,
) -> tuple[list[str], dict[str, str]]:
    """The argv and the environment to add. Agent i runs on hosts[i].

    more: arguments of the user's for mpiexec. They stand last, so that they overrule ours.
    has_others: the job runs on other hosts as well. Then mpiexec is not told to fork on this one:
    in a job of a batch system it starts a step, which has all CPUs.
    Where every host is this machine, all agents are forked here and no ssh is needed; a name may
    then stand in the list several times.
    """
    local = not has_others and all(host.is_local for host in hosts)
    count = str(len(hosts))
    if flavour is Flavour.OPEN_MPI:
        where = ",".join(("localhost" if local else host.name) + ":1" for host in hosts)
        if local:
            where = f"localhost:{count}"
        spread = ["--bind-to", "none"] if local else ["--map-by", "ppr:1:node", "--bind-to", "none"]
        env = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp"}  # no files in /dev/shm to leak
        if root:
            env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return [mpiexec, "-n", count, "--host", where, *spread, *more, *agent], env
    if local:
        return [mpiexec, "-launcher", "fork", "-n", count, *more, *agent], {}
    names = ",".join(host.name for host in hosts)
    return [mpiexec, "-hosts", names, "-ppn", "1", "-n", count, *more, *agent], dict(OVER_TCP)
