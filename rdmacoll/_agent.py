"""rdmarun's agent, as a process that it started knows it; for every other process there is none.

RDMACOLL_AGENT is inherited by whatever a rank starts, and so are RANK and the like: children, and
jobs that are started inside a rank, are not of this job. So the variable alone says nothing. A rank
is a child of the agent, and the agent says which one; launcher/rendezvous.py has the
protocol.
Floor: rdmacoll/. Thread: any.
"""

import os
from dataclasses import dataclass
from typing import Any

from .launcher.ask_agent import Identity, ask_identity, pid_of_agent


@dataclass(frozen=True)
class Agent:
    """Of this host, and which of its ranks this process is."""

    address: str
    identity: Identity

    def introduces(self, rank: int, size: int, store: Any) -> bool:
        """Whether it makes the rendezvous of this group: of the job's ranks, as they are numbered,
        over the job's Store. Who brings a Store of its own meets others in that."""
        own = self.identity
        return (rank, size) == (own.rank, own.world) and self._is_jobs(store)

    def _is_jobs(self, store: Any) -> bool:
        import torch.distributed as dist

        while isinstance(store, dist.PrefixStore):
            store = store.underlying_store
        if not isinstance(store, dist.TCPStore):
            return False
        return (store.host, store.port) == (self.identity.master_addr, self.identity.master_port)


_asked: tuple[int, Agent | None] | None = None  # by which process, and what came out


def own_agent() -> Agent | None:
    """None: this process is no rank that rdmarun started."""
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
