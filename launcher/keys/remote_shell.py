"""The command that runs a program on another host: as mpiexec would start its own there.

Floor: launcher/keys. Thread: any.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Shell(NamedTuple):
    """The variables in which an MPI is told what starts programs on other hosts."""

    program: str  # in place of ssh
    arguments: str  # more of them for it
    launcher: str  # of which kind it is
    ssh: str  # that variable's word for ssh and its like


# The first of which a variable is set counts.
SHELLS = (
    Shell("HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCHER_EXTRA_ARGS", "HYDRA_LAUNCHER", "ssh"),
    Shell(
        "I_MPI_HYDRA_BOOTSTRAP_EXEC",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
        "I_MPI_HYDRA_BOOTSTRAP",
        "ssh",
    ),
    Shell("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_plm", "rsh"),
    Shell("PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_args", "PRTE_MCA_plm", "ssh"),
)
# A step beside mpiexec's own.
SRUN = ["srun", "--overlap", "--quiet", "--mpi=none", "-N1", "-n1"]


class NoRemoteShell(ValueError):
    """The environment names no program that could reach other hosts."""


def remote_command(environ: Mapping[str, str], host: str, command: Sequence[str]) -> list[str]:
    """What runs the command on the host. NoRemoteShell if the environment names nothing usable."""
    if environ.get("SLURM_JOB_ID") and not _names_ssh(environ):
        return [*SRUN, f"--nodelist={host}", *command]
    if environ.get("LSB_JOBID") and not _names_ssh(environ):
        return [str(Path(environ.get("LSF_BINDIR", ""), "blaunch")), host, shlex.join(command)]
    return [*remote_shell(environ), host, shlex.join(command)]


def _names_ssh(environ: Mapping[str, str]) -> bool:
    """Whether mpiexec is told to take ssh, or another program in its place. In a job of Slurm all
    MPIs take srun otherwise, and MPICH takes LSF's blaunch, which reads its input as ssh does."""
    return any(
        environ.get(shell.program) or environ.get(shell.launcher) in ("ssh", "rsh")
        for shell in SHELLS
    )


def remote_shell(environ: Mapping[str, str]) -> list[str]:
    """ssh, or what is used instead; of several programs in a variable, the first."""
    said = next((environ[shell.program] for shell in SHELLS if environ.get(shell.program)), "ssh")
    more = next((environ[shell.arguments] for shell in SHELLS if environ.get(shell.arguments)), "")
    try:
        program = shlex.split(said.partition(":")[0])
        arguments = shlex.split(more)
    except ValueError:  # a quotation that does not end
        program = []
    if not program:
        raise NoRemoteShell(
            f"{said!r} with {more!r} is no command like ssh; see "
            + ", ".join(shell.program for shell in SHELLS)
        )
    is_ssh = Path(program[0]).name == "ssh"
    return [*program, *(["-x"] if is_ssh else []), *arguments]
