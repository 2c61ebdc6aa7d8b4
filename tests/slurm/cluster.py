"""A Slurm cluster of hosts on this machine (hosts/stand.py): nodeA and nodeB compute, and nodeC is
where users log in.

Debian's slurmctld, slurmd and munged run as root from a folder of the test's; nothing of the
machine's own configuration is read or changed.
Floor: tests.
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from hosts.processes import processes_in
from hosts.stand import Host

NODES, LOGIN_HOST = 2, 2  # how many compute; the place of the other one
LIMIT_S = 120  # for anything here; a hang fails by it
PROGRAMS = ("munged", "slurmctld", "slurmd", "salloc", "sbatch", "srun", "scontrol", "sinfo")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CONFIG = """\
ClusterName=test
SlurmctldHost=nodeA
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
TaskPluginParam=autobind=cores
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
NodeName=nodeA,nodeB CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=nodeA,nodeB Default=YES MaxTime=10 State=UP
"""


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


class Cluster:
    """Its processes end with the hosts, which are whoever's made them."""

    def __init__(self, hosts: Sequence[Host], folder: Path) -> None:
        self._hosts = hosts
        self._folder = folder
        self._env = {"PATH": PATH, "SLURM_CONF": f"{folder}/slurm.conf"}
        cpus = os.cpu_count()
        (folder / "slurm.conf").write_text(CONFIG.format(folder=folder, cpus=cpus))
        key = folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        where = [f"--{option}={folder}/munge.{end}" for option, end in files.items()]
        log = f"--log-file={folder}/munge.log"
        # The folder belongs to others than munged is used to; --force has it warn of that only.
        self._daemon(hosts[0], "munged", "--foreground", "--force", log, *where)
        self.wait_for((folder / "munge.socket").exists, "munged")
        self._daemon(hosts[0], "slurmctld", "-D", "-c")
        for host in hosts[:NODES]:
            self._daemon(host, "slurmd", "-D", "-c")
        self.wait_for(self._all_idle, "idle nodes")
        self._own = set(self._processes())

    def run(self, *argv: str, host: int = 0) -> "subprocess.CompletedProcess[str]":
        pipe = subprocess.PIPE
        process = self._start(self._hosts[host], argv, stdout=pipe, stderr=pipe)
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def processes_of_jobs(self) -> list[str]:
        """The command lines on all hosts that are not the cluster's own."""
        lines = []
        for pid in set(self._processes()) - self._own:
            with suppress(OSError):  # it has ended
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                lines.append(line.replace(b"\0", b" ").decode())
        return lines

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}; {self._said()}"
            time.sleep(0.1)

    def _processes(self) -> list[int]:
        return [pid for host in self._hosts for pid in processes_in(host.keeper.network)]

    def _start(self, host: Host, argv: Sequence[str], **options: object) -> "subprocess.Popen[str]":
        # mpiexec is to choose by itself what it starts its processes with.
        return host.start("env", "-u", "HYDRA_LAUNCHER_EXEC", *argv, env=self._env, **options)

    def _daemon(self, host: Host, *argv: str) -> None:
        with open(self._folder / f"{argv[0]}.{host.name}.said", "wb") as said:
            self._start(host, argv, stdout=said, stderr=said)

    def _all_idle(self) -> bool:
        return self.run("sinfo", "-hN", "-o%T").stdout.split() == ["idle"] * NODES

    def _said(self) -> str:
        """The last words of the daemons."""
        said = sorted(self._folder.glob("*.said"))
        return "\n".join(f"{path.name}: {path.read_text()[-1000:]}" for path in said)


def rdmarun(*argv: str) -> list[str]:
    return [sys.executable, "-m", "rdmacoll.launcher", *argv]
