"""rdmarun's agent, from the side of a rank or a helper. A process that no agent has started as one
of these has none.

Children of a rank, and jobs that it starts, are not of the rank's job, but inherit RDMACOLL_AGENT,
RANK and the like. So the variables prove nothing. Whether a process is a rank, and which, it learns
from its parent, if that is the agent; launcher/agent/rendezvous.py has the protocol. A helper asks
the agent for the job's secret only: its groups, of itself alone, meet in Stores.
Floor: rdmacoll/. Thread: any.
"""

import os
from dataclasses import dataclass
from typing import Any

from rdmacoll.base.agent_protocol import Identity, ask_identity, pid_of_agent


@dataclass(frozen=True)
class Agent:
    """The agent of this host, and which rank or helper it says this process is."""

    address: str
    identity: Identity

    def introduces(self, rank: int, size: int, store: Any) -> bool:
        """Whether the ranks of this group meet through the agent.

        That is so for all ranks of the job, numbered as the job numbers them, if the program uses
        the job's Store. A program with a Store of its own expects to meet others in that.
        """
        own = self.identity
        return (rank, size) == (own.rank, own.world) and self._is_jobs(store)

    def _is_jobs(self, store: Any) -> bool:
        import torch.distributed as dist

        while isinstance(store, dist.PrefixStore):
            store = store.underlying_store
        if not isinstance(store, dist.TCPStore):
            return False
        return (store.host, store.port) == (self.identity.master_addr, self.identity.master_port)


_asked: tuple[int, Agent | None] | None = None  # the process that asked, and the answer


def own_agent() -> Agent | None:
    """None if rdmarun has started this process neither as a rank nor as a helper."""
    global _asked
    if _asked is None or _asked[0] != os.getpid():
        _asked = os.getpid(), _ask()
    return _asked[1]


def _ask() -> Agent | None:
    address = os.environ.get("RDMACOLL_AGENT", "")
    if not address or os.getppid() != pid_of_agent(address):
        return None
    identity = ask_identity(address)
    return None if identity is None else Agent(address, identity)
