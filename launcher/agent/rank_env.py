"""The environment of a rank, with torchrun's variables and Horovod's, and of a helper. Pure.

Floor: launcher/agent. Thread: any.
"""

import hmac
import json
from dataclasses import dataclass
from typing import Final

from rdmacoll.launcher.base.job import Job

from rdmacoll.base.agent_protocol import JOINS, STARTS

# The own variables of a rank or a helper. rdmarun may run in one of another job: these are then
# that job's, and none of this one may get them.
OWN: Final = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_USE_AGENT_STORE",
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "HOROVOD_ELASTIC",
    "RDMACOLL_AGENT",
    "RDMACOLL_ELASTIC",
    "RDMACOLL_MOUNT",
    "RDMACOLL_SERVERS",
    "RDMACOLL_SERVER",
    "RDMACOLL_SERVER_START",
    "RDMACOLL_SERVER_MEMORY",
    "RDMACOLL_SERVER_REPLICAS",
    "RDMACOLL_SERVER_HOSTS",
}


@dataclass(frozen=True)
class Master:
    """Where the job's TCPStore listens."""

    address: str
    port: int


@dataclass(frozen=True)
class Attempt:
    """What the agents agree on each time that they start the ranks."""

    number: int  # 0 is the first; the others are restarts
    master: Master
    secret: bytes

    @property
    def id(self) -> str:
        """A name that no other start has, in any job. It does not reveal the secret."""
        return hmac.new(self.secret, b"id of this start", "sha256").hexdigest()

    def to_text(self) -> bytes:
        """All but the secret, which each agent derives by itself."""
        return json.dumps([self.number, self.master.address, self.master.port]).encode()

    @staticmethod
    def from_text(text: bytes, secret: bytes) -> "Attempt":
        number, address, port = json.loads(text)
        return Attempt(number, Master(address, port), secret)


def shared_env(job: Job) -> dict[str, str]:
    """What all ranks and helpers of the job see. The user's OMP_NUM_THREADS and PYTHONUNBUFFERED
    are kept."""
    users = {name: value for name, value in job.env.items() if name not in OWN}
    ours = {"OMP_NUM_THREADS": "1"} if sets_one_thread(job) else {}
    return {"PYTHONUNBUFFERED": "1", **users, **ours}


def own_env(
    job: Job, agent: int, local_rank: int, attempt: Attempt, rendezvous: str, joins: bool = False
) -> dict[str, str]:
    """What a rank sees besides."""
    rank, world = job.first_rank(agent) + local_rank, job.world
    own: dict[str, object] = {
        "RANK": rank,
        "WORLD_SIZE": world,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": job.hosts[agent].slots,
        "GROUP_RANK": agent,
        "GROUP_WORLD_SIZE": len(job.hosts),
        "ROLE_NAME": job.role,
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": world,
        "MASTER_ADDR": attempt.master.address,
        "MASTER_PORT": attempt.master.port,
        "TORCHELASTIC_RUN_ID": job.run_id,
        "TORCHELASTIC_RESTART_COUNT": attempt.number,
        "TORCHELASTIC_MAX_RESTARTS": job.max_restarts,
        "TORCHELASTIC_USE_AGENT_STORE": True,
        "RDMACOLL_AGENT": rendezvous,
        **_horovods(job, agent, local_rank),
    }
    if job.elastic:
        own["RDMACOLL_ELASTIC"] = JOINS if joins else STARTS
        own["HOROVOD_ELASTIC"] = 1
    if job.servers:
        own["RDMACOLL_SERVERS"] = len(job.servers)
    if job.mount is not None:
        own["RDMACOLL_MOUNT"] = job.mount
    return {name: str(value) for name, value in own.items()}


def _horovods(job: Job, agent: int, local_rank: int) -> dict[str, int]:
    """Cross: among the ranks that have this local rank, one for each host that has as many."""
    hosts = [number for number, host in enumerate(job.hosts) if host.slots > local_rank]
    return {
        "HOROVOD_RANK": job.first_rank(agent) + local_rank,
        "HOROVOD_SIZE": job.world,
        "HOROVOD_LOCAL_RANK": local_rank,
        "HOROVOD_LOCAL_SIZE": job.hosts[agent].slots,
        "HOROVOD_CROSS_RANK": hosts.index(agent),
        "HOROVOD_CROSS_SIZE": len(hosts),
    }


def server_env(
    job: Job, start: int, attempt: Attempt, rendezvous: str, server: int
) -> dict[str, str]:
    """What a server sees besides. start: 0 the first time, and larger each time that it is started
    again."""
    own: dict[str, object] = {
        "RDMACOLL_SERVER": server,
        "RDMACOLL_SERVER_START": start,
        "RDMACOLL_SERVER_REPLICAS": job.server_replicas,
        "RDMACOLL_SERVER_HOSTS": ",".join(str(agent) for agent in job.servers),
    }
    if job.server_memory_bytes is not None:
        own["RDMACOLL_SERVER_MEMORY"] = job.server_memory_bytes
    return _helper_env(job, attempt, rendezvous, own)


def mount_env(job: Job, _start: int, attempt: Attempt, rendezvous: str) -> dict[str, str]:
    """What the process of the mount sees besides."""
    return _helper_env(job, attempt, rendezvous, {"RDMACOLL_MOUNT": job.mount})


def _helper_env(
    job: Job, attempt: Attempt, rendezvous: str, own: dict[str, object]
) -> dict[str, str]:
    shared: dict[str, object] = {
        "WORLD_SIZE": job.world,
        "MASTER_ADDR": attempt.master.address,
        "MASTER_PORT": attempt.master.port,
        "TORCHELASTIC_RUN_ID": job.run_id,
        "TORCHELASTIC_RESTART_COUNT": attempt.number,
        "RDMACOLL_AGENT": rendezvous,
        "RDMACOLL_SERVERS": len(job.servers),
    }
    return {name: str(value) for name, value in (shared | own).items()}


def sets_one_thread(job: Job) -> bool:
    """As torchrun: several ranks on a host get one thread each, unless the user says otherwise."""
    return "OMP_NUM_THREADS" not in job.env and any(host.slots > 1 for host in job.hosts)
