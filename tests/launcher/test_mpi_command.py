"""Golden command lines for each MPI, and telling the MPIs apart.

Floor: tests.
"""

import pytest
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.command.mpi_command import Flavour, mpi_command

AGENT = ["python", "agent"]
HERE = [Host("localhost", 2)]
HERE_TWICE = [Host("localhost", 1), Host("127.0.0.1", 1)]
CLUSTER = [Host("a", 4), Host("b", 2)]

GOLDEN = [
    (Flavour.MPICH, HERE, "mpiexec -launcher fork -n 1 python agent"),
    (Flavour.MPICH, HERE_TWICE, "mpiexec -launcher fork -n 2 python agent"),
    (Flavour.MPICH, CLUSTER, "mpiexec -hosts a,b -ppn 1 -n 2 python agent"),
    (Flavour.INTEL_MPI, HERE, "mpiexec -launcher fork -n 1 python agent"),
    (Flavour.INTEL_MPI, CLUSTER, "mpiexec -hosts a,b -ppn 1 -n 2 python agent"),
    (
        Flavour.OPEN_MPI,
        HERE_TWICE,
        "mpiexec -n 2 --host localhost:2 --bind-to none python agent",
    ),
    (
        Flavour.OPEN_MPI,
        CLUSTER,
        "mpiexec -n 2 --host a:1,b:1 --map-by ppr:1:node --bind-to none python agent",
    ),
]


@pytest.mark.parametrize(("flavour", "hosts", "command"), GOLDEN)
def test_command(flavour: Flavour, hosts: list[Host], command: str) -> None:
    argv, env = mpi_command("mpiexec", flavour, hosts, AGENT, root=False)
    assert " ".join(argv) == command
    if flavour is Flavour.OPEN_MPI:
        assert env == {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp"}
    else:
        assert env == ({"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"} if hosts is CLUSTER else {})


@pytest.mark.parametrize(("flavour", "hosts", "command"), GOLDEN)
def test_the_users_arguments_stand_last(flavour: Flavour, hosts: list[Host], command: str) -> None:
    argv, _ = mpi_command("mpiexec", flavour, hosts, AGENT, root=False, more=["-iface", "eth 0"])
    assert argv == [*command.split()[: -len(AGENT)], "-iface", "eth 0", *AGENT]


def test_this_host_is_named_where_it_is_one_of_several() -> None:
    argv, env = mpi_command("mpiexec", Flavour.MPICH, HERE, AGENT, False, has_others=True)
    assert " ".join(argv) == "mpiexec -hosts localhost -ppn 1 -n 1 python agent"
    assert env == {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"}


def test_open_mpi_must_be_told_that_root_is_meant() -> None:
    _, env = mpi_command("mpiexec", Flavour.OPEN_MPI, HERE, AGENT, root=True)
    assert {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"} < env.keys()
    assert mpi_command("mpiexec", Flavour.MPICH, HERE, AGENT, root=True)[1] == {}


@pytest.mark.parametrize(
    ("text", "flavour"),
    [
        ("HYDRA build details:\n    Version:   5.0.2", Flavour.MPICH),
        ("mpiexec (Open MPI) 5.0.8\n\nReport bugs to ...", Flavour.OPEN_MPI),
        ("mpiexec (OpenRTE) 4.1.4", Flavour.OPEN_MPI),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.16", Flavour.INTEL_MPI),
        ("slurm 23.02", None),
        ("", None),
    ],
)
def test_flavours(text: str, flavour: Flavour | None) -> None:
    assert Flavour.of(text) is flavour
