"""How rdmarun is told to reach other hosts: golden variables for each MPI and commands for the key.

Floor: tests.
"""

from pathlib import Path

import pytest
from job_runner import TWO_HOSTS, Jobs
from rdmacoll.launcher.command.options import Options, parse
from rdmacoll.launcher.keys.remote_shell import remote_command


def options_of(*argv: str, **environ: str) -> Options:
    return parse(["-np", "2", *argv, "script.py"], environ, "0")


def test_ssh_options_in_the_variables_of_each_mpi(tmp_path: Path) -> None:
    key = tmp_path / "id"
    key.write_text("")
    with_port = options_of("-p", "2222", "-i", str(key)).remote_env
    assert with_port == {
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXTRA_ARGS": f"-p 2222 -i {key}",
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": f"-p 2222 -i {key}",
        "OMPI_MCA_plm": "rsh",
        "OMPI_MCA_plm_rsh_args": f"-p 2222 -i {key}",
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_plm_ssh_args": f"-p 2222 -i {key}",
    }
    assert options_of("--launcher-exec", "/opt/sh").remote_env == {
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": "/opt/sh",
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/opt/sh",
        "OMPI_MCA_plm": "rsh",
        "OMPI_MCA_plm_rsh_agent": "/opt/sh",
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_plm_ssh_agent": "/opt/sh",
    }
    assert options_of().remote_env == {}


def test_what_the_environment_says_to_ssh_stays() -> None:
    """As mpi-operator has it."""
    env = options_of("-p", "22", OMPI_MCA_plm_rsh_args="-o ConnectionAttempts=10").remote_env
    assert env["OMPI_MCA_plm_rsh_args"] == "-o ConnectionAttempts=10 -p 22"
    assert env["HYDRA_LAUNCHER_EXTRA_ARGS"] == "-o ConnectionAttempts=10 -p 22"


SLURM = {"SLURM_JOB_ID": "1"}
SRUN = "srun --overlap --quiet --mpi=none -N1 -n1 --nodelist=n2 holder 1"


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({}, "ssh -x n2 holder 1"),
        ({"HYDRA_LAUNCHER_EXTRA_ARGS": "-p 2222"}, "ssh -x -p 2222 n2 holder 1"),
        (
            {"OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10"},
            "ssh -x -o ConnectionAttempts=10 n2",
        ),
        ({"PRTE_MCA_plm_ssh_agent": "rsh", "PRTE_MCA_plm_ssh_args": "-4"}, "rsh -4 n2 holder 1"),
        ({"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh"}, "/etc/mpi/kubexec.sh n2 holder 1"),
        (SLURM, SRUN),
        (SLURM | {"HYDRA_LAUNCHER": "slurm"}, SRUN),
        (SLURM | {"HYDRA_LAUNCHER_EXTRA_ARGS": "--time=5"}, SRUN),
        (SLURM | {"HYDRA_LAUNCHER": "ssh"}, "ssh -x n2 holder 1"),
        (SLURM | {"OMPI_MCA_plm": "rsh"}, "ssh -x n2 holder 1"),
        ({"LSB_JOBID": "9"}, "blaunch n2 holder 1"),
        ({"LSB_JOBID": "9", "LSF_BINDIR": "/lsf/bin"}, "/lsf/bin/blaunch n2 holder 1"),
        ({"LSB_JOBID": "9", "HYDRA_LAUNCHER": "ssh"}, "ssh -x n2 holder 1"),
        ({"PBS_JOBID": "7"}, "ssh -x n2 holder 1"),
        (SLURM | {"HYDRA_LAUNCHER_EXEC": "/opt/sh"}, "/opt/sh n2 holder 1"),
    ],
)
def test_how_the_key_gets_to_a_host(environ: dict[str, str], command: str) -> None:
    assert " ".join(remote_command(environ, "n2", ["holder", "1"])).startswith(command)


def test_network_interfaces_are_for_the_ranks() -> None:
    options = options_of("--network-interfaces", "^docker0")
    assert options.env == {"RDMACOLL_SOCKET_IFNAME": "^docker0"}
    assert options.remote_env == {}


def test_mpi_args_are_split_as_a_shell_does() -> None:
    assert options_of('--mpi-args=-iface "eth 0" -verbose').mpi_args == [
        "-iface",
        "eth 0",
        "-verbose",
    ]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["-p", "0"], "-p/--ssh-port: '0' is no port from 1 to 65535"),
        (["-p", "65536"], "'65536' is no port"),
        (["-p", "ssh"], "'ssh' is no port"),
        (["-i", "/none"], "-i/--ssh-identity-file: /none: there is no such file"),
        (["-i", ""], "'' is not one word without blanks"),
        (["--launcher-exec", "ssh -q"], "'ssh -q' is not one word without blanks"),
        (["--mpi-args=-x '"], "cannot be split as a shell does: No closing quotation"),
        (["--network-interfaces", "eth0, eth1"], "'eth0, eth1' is not one word"),
    ],
)
def test_wrong_options(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(*args)
    assert says in capsys.readouterr().err


# Called as `PROGRAM OPTIONS HOST COMMAND`, it runs the command here.
PROGRAM = """#!/bin/bash
echo "$*" >>{calls}
while [[ $1 == -* ]]; do [ $1 = -p ] && shift; shift; done
shift
exec bash -c "$*"
"""


def test_mpiexec_and_the_key_go_the_same_way(jobs: Jobs) -> None:
    """Also in a job of Slurm, where without the options both would call srun."""
    program, noted = jobs.folder / "program", jobs.folder / "calls"
    program.write_text(PROGRAM.format(calls=noted))
    program.chmod(0o755)
    options = ["-H", "nodeA:1,nodeB:1", "-p", "2222", "--launcher-exec", str(program)]
    done = jobs.run(*options, jobs.script("print('here')"), **SLURM)
    assert (done.returncode, done.stdout.count("here")) == (0, 2), done.stderr
    calls = noted.read_text().splitlines()
    assert len(calls) == 4  # two key holders, two of mpiexec's proxies
    assert all("-p 2222 node" in call for call in calls), calls


def test_mpi_args_reach_mpiexec(jobs: Jobs) -> None:
    """Hydra then puts the word before what it reads from agents."""
    done = jobs.run(*TWO_HOSTS, "--mpi-args=-prepend-pattern hydra:", jobs.script("print('here')"))
    assert done.returncode == 0, done.stderr
    assert "hydra:" in done.stdout and done.stdout.count("here") == 2, done.stdout


def test_options_for_other_hosts_where_there_are_none(jobs: Jobs) -> None:
    done = jobs.run("-np", "1", "-p", "2222", jobs.script("print('here')"))
    assert done.stdout == "[0]: here\n"
    assert "on this host alone: nothing is asked of ssh and mpiexec" in done.stderr
