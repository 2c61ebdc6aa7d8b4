"""Hosts and slots from the environments of batch systems.

Those of Slurm are recorded: Debian 12's Slurm 22.05 set them in jobs on two nodes. Those of PBS,
LSF and mpi-operator are written after the formats that these document; they have not been run.
Floor: tests.
"""

import pytest
from rdmacoll.launcher.base.hosts import Host, HostError
from rdmacoll.launcher.command.allocation.find import find_allocation
from rdmacoll.launcher.command.allocation.host_list_file import read_host_list

from rdmacoll.base.slurm_lists import expand_counts, expand_hosts

FILES = {
    "/var/spool/torque/aux/7.pbs": "n1\nn1\nn2\nn2\nn2\n\n",
    "/empty": "\n\n",
    "/odd": "n1\n-oProxyCommand=x\n",
    "/lsf": "batch1\nn1\nn1\nn2\n",
    "/etc/mpi/hostfile": "w-0.w.default.svc slots=2\nw-1.w.default.svc slots=4\n",
    "/etc/mpi/hydra": "w-0.w.default.svc:2\nw-1.w.default.svc:4\n",
}

# sbatch -N2 --ntasks-per-node=2
SLURM = {
    "SLURM_JOB_ID": "123",
    "SLURM_JOBID": "123",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_NODELIST": "n[1-2]",
    "SLURM_TASKS_PER_NODE": "2(x2)",
    "SLURM_NTASKS": "4",
    "SLURM_NTASKS_PER_NODE": "2",
    "SLURM_JOB_CPUS_PER_NODE": "2(x2)",
    "SLURM_CPUS_ON_NODE": "2",
    "SLURM_PROCID": "0",
}
# In that job's script: srun -N1 -n1
SLURM_STEP = SLURM | {
    "SLURM_TASKS_PER_NODE": "1",
    "SLURM_NTASKS": "1",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n1",
    "SLURM_STEP_NUM_TASKS": "1",
    "SLURM_STEP_TASKS_PER_NODE": "1",
}
# sbatch -n3 -c2 on nodes of four cores
SLURM_WIDE = {
    "SLURM_JOB_ID": "1",
    "SLURM_CPUS_ON_NODE": "4",
    "SLURM_CPUS_PER_TASK": "2",
    "SLURM_JOB_CPUS_PER_NODE": "4,2",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_NODELIST": "n[1-2]",
    "SLURM_TASKS_PER_NODE": "2,1",
}
PBS = {"PBS_JOBID": "7.server", "PBS_NODEFILE": "/var/spool/torque/aux/7.pbs"}
LSF = {"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "hostA 2 hostB 4 "}
OPEN_MPI_JOB = {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile"}

TWO_AND_TWO = [Host("n1", 2), Host("n2", 2)]
WORKERS = [Host("w-0.w.default.svc", 2), Host("w-1.w.default.svc", 4)]


def read(path: str, named_by: str) -> str:
    if path not in FILES:
        raise HostError(f"{named_by} {path}: No such file or directory")
    return FILES[path]


def without(environ: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in names}


@pytest.mark.parametrize(
    ("environ", "job", "hosts"),
    [
        (SLURM, "Slurm job 123", TWO_AND_TWO),
        (SLURM_STEP, "Slurm job 123", TWO_AND_TWO),
        (SLURM_WIDE, "Slurm job 1", [Host("n1", 2), Host("n2", 1)]),
        (SLURM_WIDE | {"SLURM_STEP_ID": "0"}, "Slurm job 1", [Host("n1", 2), Host("n2", 1)]),
        (without(SLURM, "SLURM_JOB_ID", "SLURM_JOB_NODELIST"), "Slurm job 123", TWO_AND_TWO),
        (without(SLURM, "SLURM_TASKS_PER_NODE"), "Slurm job 123", TWO_AND_TWO),
        (SLURM | PBS, "Slurm job 123", TWO_AND_TWO),
        (
            {"SLURM_JOB_ID": "1", "SLURM_NODELIST": "n7", "SLURM_CPUS_ON_NODE": "8"},
            "Slurm job 1",
            [Host("n7", 8)],
        ),
        (PBS, "PBS job 7.server", [Host("n1", 2), Host("n2", 3)]),
        (LSF, "LSF job 9", [Host("hostA", 2), Host("hostB", 4)]),
        (
            {"LSB_JOBID": "9", "LSB_DJOB_HOSTFILE": "/lsf"},
            "LSF job 9",
            [Host("batch1", 1), Host("n1", 2), Host("n2", 1)],
        ),
        (
            {"LSB_JOBID": "9", "LSB_DJOB_HOSTFILE": "/lsf", "CSM_ALLOCATION_ID": "5"},
            "LSF job 9",
            [Host("n1", 2), Host("n2", 1)],
        ),
        (LSF | {"CSM_ALLOCATION_ID": "5"}, "LSF job 9", [Host("hostB", 4)]),
        (OPEN_MPI_JOB, "this MPIJob", WORKERS),
        ({"HYDRA_HOST_FILE": "/etc/mpi/hydra"}, "this MPIJob", WORKERS),
        ({"I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hydra"}, "this MPIJob", WORKERS),
    ],
)
def test_allocations(environ: dict[str, str], job: str, hosts: list[Host]) -> None:
    allocation = find_allocation(environ, read)
    assert allocation is not None
    assert (allocation.job, allocation.hosts()) == (job, hosts)


def test_slurms_short_forms() -> None:
    """Slurm writes nothing behind a bracket; that is taken all the same."""
    names = ["n1x", "n2x", "n3x", "n07x", "n08x", "n09x", "m1"]
    assert expand_hosts("n[1-3,07-09]x,m1") == names
    assert expand_hosts("r[0-1]n[9-10]") == ["r0n9", "r0n10", "r1n9", "r1n10"]
    assert expand_counts("4(x2),3") == [4, 4, 3]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HYDRA_HOST_FILE": "/home/me/hosts"},  # of Hydra's user, not of mpi-operator
        {"SLURM_CONF": "/etc/slurm.conf", "PBS_SERVER": "s", "LSF_BINDIR": "/lsf/bin"},
    ],
)
def test_no_allocation(environ: dict[str, str]) -> None:
    assert find_allocation(environ, read) is None


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"SLURM_JOB_ID": "1"}, "SLURM_JOB_NODELIST: is not set, though SLURM_JOB_ID is"),
        (SLURM | {"SLURM_JOB_NODELIST": "n[1-"}, "SLURM_JOB_NODELIST=n[1-: a bracket is missing"),
        (SLURM | {"SLURM_JOB_NODELIST": "n1,"}, "SLURM_JOB_NODELIST=n1,: a name is missing or cut"),
        (SLURM | {"SLURM_JOB_NODELIST": "n[1-3]"}, "SLURM_TASKS_PER_NODE=2(x2): counts 2 hosts,"),
        (SLURM | {"SLURM_JOB_NODELIST": "n[1-9999999]"}, "it names more than 65536 hosts"),
        (SLURM | {"SLURM_JOB_NODELIST": "-o,x"}, "'-o' is no name of a host"),
        (SLURM | {"SLURM_TASKS_PER_NODE": "2(x"}, "SLURM_TASKS_PER_NODE=2(x: '2(x' is no number"),
        (SLURM_STEP | {"SLURM_STEP_NUM_TASKS": "4"}, "SLURM_STEP_NUM_TASKS=4: srun starts rdmarun"),
        (
            SLURM_STEP | {"SLURM_JOB_CPUS_PER_NODE": "x"},
            "SLURM_JOB_CPUS_PER_NODE=x: 'x' is no numb",
        ),
        (
            {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1"},
            "SLURM_JOB_CPUS_PER_NODE: is not set, though SLURM_JOB_ID is",
        ),
        ({"PBS_JOBID": "7"}, "PBS_NODEFILE: is not set, though PBS_JOBID is"),
        (PBS | {"PBS_NODEFILE": "/gone"}, "PBS_NODEFILE /gone: No such file"),
        (PBS | {"PBS_NODEFILE": "/empty"}, "PBS_NODEFILE /empty: names no host"),
        (PBS | {"PBS_NODEFILE": "/odd"}, "PBS_NODEFILE /odd: '-oProxyCommand=x' is no name"),
        ({"LSB_JOBID": "9"}, "LSB_MCPU_HOSTS: is not set, though LSB_JOBID is"),
        (LSF | {"LSB_MCPU_HOSTS": "a 2 b"}, "LSB_MCPU_HOSTS=a 2 b: is no list of hosts"),
        (LSF | {"LSB_MCPU_HOSTS": " "}, "LSB_MCPU_HOSTS= : is no list of hosts"),
        (LSF | {"LSB_MCPU_HOSTS": "a 2 b x"}, "'x' is no number of slots for 'b'"),
        (
            {"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "batch1 1", "CSM_ALLOCATION_ID": "5"},
            "LSB_MCPU_HOSTS=batch1 1: names the launch host only",
        ),
        ({"HYDRA_HOST_FILE": "/etc/mpi/gone"}, "HYDRA_HOST_FILE /etc/mpi/gone: No such file"),
    ],
)
def test_wrong_and_truncated(environ: dict[str, str], says: str) -> None:
    allocation = find_allocation(environ, read)
    assert allocation is not None
    with pytest.raises(HostError) as error:
        allocation.hosts()
    assert says in str(error.value)


def test_an_error_does_not_repeat_a_long_value() -> None:
    allocation = find_allocation(SLURM | {"SLURM_JOB_NODELIST": "n1," * 5000}, read)
    assert allocation is not None
    with pytest.raises(HostError) as error:
        allocation.hosts()
    assert len(str(error.value)) < 400


def test_files_are_read() -> None:
    with pytest.raises(HostError, match="PBS_NODEFILE /: Is a directory"):
        read_host_list("/", "PBS_NODEFILE")
