"""A Slurm cluster of two nodes on this machine: each has namespaces of its own, joined by a cable.

Debian's slurmctld, slurmd and munged run as root from a folder of the test's; nothing of the
machine's own configuration is read or changed. What a node runs is in its namespace of processes,
so it ends with the first process there.
Floor: tests.
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

LIMIT_S = 120  # for anything here; a hang fails by it
NODES = {"n1": "10.79.0.1", "n2": "10.79.0.2"}
PROGRAMS = ("munged", "slurmctld", "slurmd", "salloc", "srun", "ip", "unshare", "nsenter")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CONFIG = """\
ClusterName=test
SlurmctldHost=n1
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
NodeName=n[1-2] CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=10 State=UP
"""
NODE = """
hostname {name}
ip link set lo up
mount --bind {folder}/hosts /etc/hosts
mount --bind {folder}/boot_id.{name} /proc/sys/kernel/random/boot_id
mount -t tmpfs tmpfs /dev/shm
echo up
sleep infinity &
wait  # for adopted processes as well, which would stay zombies
"""


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


class Node:
    """Namespaces for all but users and files; the first process there keeps them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        (folder / f"boot_id.{name}").write_text(f"{uuid.uuid4()}\n")  # by it hosts are told apart
        kinds = ["--net", "--uts", "--ipc", "--mount", "--pid", "--mount-proc"]
        inside = ["sh", "-ec", NODE.format(name=name, folder=folder)]
        self._keeper = subprocess.Popen(
            ["unshare", *kinds, "--fork", "--kill-child", *inside],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "PATH": PATH},
        )
        assert self._keeper.stdout is not None
        up = self._keeper.stdout.readline()
        assert up == b"up\n", f"node {name} has no namespaces of its own"
        pid = self._keeper.pid
        self.first = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def command(self, *argv: str) -> list[str]:
        """What runs argv on this node, in the same folder."""
        inside = [f"--target={self.first}", "--net", "--uts", "--ipc", "--mount", "--pid"]
        return ["nsenter", *inside, f"--wd={os.getcwd()}", *argv]

    def close(self) -> None:
        self._keeper.kill()  # the kernel kills the first process there, and with it the others
        self._keeper.wait()


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes: list[Node] = []
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.env = {**os.environ, "PATH": PATH, "SLURM_CONF": f"{folder}/slurm.conf"}
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for node in self.nodes:
            node.close()
        for daemon in self._daemons:
            daemon.wait()

    def run(self, *argv: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """On the first node."""
        return subprocess.run(
            self.nodes[0].command(*argv),
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def processes(self) -> list[str]:
        """The command lines on all nodes, but for those of the cluster itself."""
        own = ("sleep infinity", "munged", "slurmctld", ": slurmscriptd", "slurmd", "ps ", "sh -ec")
        lines = []
        for node in self.nodes:
            ps = node.command("ps", "-eo", "args", "--no-headers")
            done = subprocess.run(ps, env=self.env, capture_output=True, text=True, check=True)
            lines += [f"{node.name}: {line}" for line in done.stdout.splitlines()]
        return [line for line in lines if not line.split(": ", 1)[1].startswith(own)]

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}; {self._said()}"
            time.sleep(0.1)

    def _start(self) -> None:
        names = "".join(f"{address} {name}\n" for name, address in NODES.items())
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        config = CONFIG.format(folder=self.folder, cpus=os.cpu_count())
        (self.folder / "slurm.conf").write_text(config)
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        self.nodes += [Node(name, self.folder) for name in NODES]
        first, second = self.nodes
        cable = f"ip link add eth0 netns {first.first} type veth peer eth0 netns {second.first}"
        subprocess.run(cable.split(), env=self.env, check=True)
        for node in self.nodes:
            for end in f"addr add {NODES[node.name]}/24 dev eth0", "link set eth0 up":
                subprocess.run(node.command("ip", *end.split()), env=self.env, check=True)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        where = [f"--{option}={self.folder}/munge.{end}" for option, end in files.items()]
        log = f"--log-file={self.folder}/munge.log"
        # The folder belongs to others than munged is used to; --force has it warn of that only.
        self._daemon(first, "munged", "--foreground", "--force", log, *where)
        self.wait_for((self.folder / "munge.socket").exists, "munged")
        self._daemon(first, "slurmctld", "-D", "-c")
        for node in self.nodes:
            self._daemon(node, "slurmd", "-D", "-c")
        self.wait_for(self._all_idle, "idle nodes")

    def _daemon(self, node: Node, *argv: str) -> None:
        with open(self.folder / f"{argv[0]}.{node.name}.said", "wb") as said:
            daemon = subprocess.Popen(
                node.command(*argv),
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        self._daemons.append(daemon)

    def _all_idle(self) -> bool:
        return self.run("sinfo", "-hN", "-o%T").stdout.split() == ["idle"] * len(self.nodes)

    def _said(self) -> str:
        """The last words of the daemons."""
        said = sorted(self.folder.glob("*.said"))
        return "\n".join(f"{path.name}: {path.read_text()[-1000:]}" for path in said)


def rdmarun(*argv: str) -> list[str]:
    return [sys.executable, "-m", "rdmacoll.launcher", *argv]
