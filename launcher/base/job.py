"""Job: all that the agents must know to start the ranks, as rdmarun sends it to them. A value.

It travels through the standard input of what rdmarun starts: no secret on a command line, no file
to leave behind. rdmarun's own environment goes with it and becomes the ranks' on every host, so no
variable of MPI's reaches a rank.
Floor: launcher/base. Thread: any.
"""

import json
from dataclasses import asdict, dataclass, field

from .hosts import Host

# mpiexec reads its input whether agent 0 is ready for it or not. So agent 0 asks for each piece of
# the job with a line of output (Key.ask_line), and once more when it has them all. rdmarun takes
# these lines out of the output. The first also tells that all agents are up and know the key.
PIECE_BYTES = 1 << 15


@dataclass(frozen=True)
class Job:
    hosts: list[Host]  # one agent each, with the ranks that run there
    argv: list[str]  # what python runs: [script, ...] or ["-m", module, ...]; or a command
    cwd: str
    env: dict[str, str]
    run_id: str
    start_timeout_s: float
    is_command: bool = False
    bind: str = "none"  # or "cores", "numa" (launcher/bind)
    one_machine: bool = False  # the hosts are names of one, so their ranks share its cores
    role: str = "default"
    tag_output: bool = True
    timestamp: bool = False  # before the tag
    shown: list[int] | None = None  # local ranks whose output is; None: all
    output_dir: str | None = None
    verbose: bool = False
    min_np: int | None = None  # so many ranks must not fail; None: all of them
    max_restarts: int = 0
    elastic: bool = False  # a rank that failed is started again alone, to join the others
    preload: list[str] = field(default_factory=list)  # modules that are imported once on each host
    servers: list[int] = field(default_factory=list)  # the agent of each, by its number
    server_restarts: int = 0  # so often each may be started again
    server_memory_bytes: int | None = None
    server_replicas: int = 2  # so many servers keep each part of the tables
    mount: str | None = None  # the folder that shows the servers' files, in full

    @property
    def fewest(self) -> int:
        return self.world if self.min_np is None else self.min_np

    @property
    def world(self) -> int:
        return sum(host.slots for host in self.hosts)

    @property
    def all_local(self) -> bool:
        return all(host.is_local for host in self.hosts)

    def first_rank(self, agent: int) -> int:
        return sum(host.slots for host in self.hosts[:agent])

    def servers_of(self, agent: int) -> list[int]:
        return [server for server, host in enumerate(self.servers) if host == agent]

    def ranks_of(self, agent: int) -> str:
        """For people: `rank 4`, `ranks 2-3`."""
        first, last = self.first_rank(agent), self.first_rank(agent + 1) - 1
        return f"rank {first}" if first == last else f"ranks {first}-{last}"

    def host_of(self, rank: int) -> str:
        return self.hosts[self.agent_of(rank)].name

    def agent_of(self, rank: int) -> int:
        for agent, host in enumerate(self.hosts):
            if rank < self.first_rank(agent) + host.slots:
                return agent
        raise ValueError(f"rank {rank} is not in a world of {self.world}")

    def to_text(self) -> bytes:
        """Has no line breaks, so that it can travel as a line."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_text(text: bytes) -> "Job":
        fields = json.loads(text)
        fields["hosts"] = [Host(**host) for host in fields["hosts"]]
        return Job(**fields)
