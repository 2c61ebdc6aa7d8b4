"""What starts the agents of a job on several hosts: the commands, first and again.

Floor: launcher/command. Thread: any.
"""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.keys.key import Key
from rdmacoll.launcher.keys.key_sharing import KeySharing

from .mpi_command import OVER_TCP, Flavour, mpi_command
from .mpi_env import mpi_environment
from .mpi_find import Mpi
from .starter import Command

OF_AGENT_0 = "RDMACOLL_SOCKET_IFNAME", "RDMACOLL_TCP_PORTS"


@dataclass(frozen=True)
class Agents:
    job: Job
    key: Key
    mpi: Mpi
    argv: Sequence[str]  # of any agent, without what tells it which one it is
    mpi_args: Sequence[str]  # the user's
    environ: Mapping[str, str]
    secret_file: str | None

    def first(self) -> list[Command]:
        """Those of MPICH meet over MPI. Open MPI's would not find each other there, nor has it been
        tried with Intel's."""
        meet_over_mpi = self.mpi.flavour is Flavour.MPICH and len(self.job.hosts) > 1
        way = "mpi" if meet_over_mpi else "star"
        return [self._command(agent, way) for agent in range(len(self.job.hosts))]

    def again(self, agent: int) -> tuple[Command, Callable[[], KeySharing] | None]:
        """In the place of a lost one; and what brings it the key, if that must be."""
        share = partial(KeySharing, self.job, self.key, self.environ, [agent])
        return self._command(agent, "back"), share if self.secret_file is None else None

    def _command(self, agent: int, way: str) -> Command:
        argv = [*self.argv, self.job.run_id, str(agent), way]
        if agent == 0:
            # Not all MPIs hand on variables, and these may come from rdmarun's options.
            argv = [*self._where_to_listen(), *argv]
        if self.secret_file is not None:
            argv.append(os.path.abspath(self.secret_file))
        host, is_root = self.job.hosts[agent], os.getuid() == 0
        command, ours = mpi_command(
            self.mpi.mpiexec,
            self.mpi.flavour,
            [host],
            argv,
            is_root,
            self.mpi_args,
            has_others=not self.job.all_local,
        )
        env = mpi_environment(self.environ) | OVER_TCP | ours
        return Command(f"mpiexec (host {host.name})", command, env, self._hint)

    def _where_to_listen(self) -> list[str]:
        said = [f"{name}={self.job.env[name]}" for name in OF_AGENT_0 if name in self.job.env]
        return ["env", *said] if said else []

    def _hint(self) -> str:
        """What mpiexec of MPICH 5.0.2 starts on another host calls this one's name back, and asks
        for its IPv4 address alone."""
        own = socket.gethostname()
        if self.mpi.flavour is not Flavour.MPICH or not has_only_ipv6(own):
            return ""
        return (
            f"mpiexec of MPICH goes over IPv4 alone, and {own} has no IPv4 address by its name: "
            "give all hosts one, or start the ranks by torchrun (docs/CLUSTERS.md)"
        )


def has_only_ipv6(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(family == socket.AF_INET6 for family, *_ in found)
