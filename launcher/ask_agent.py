"""A rank's side of the agent's protocol, in Python: who it is, and that it has joined.

The exchange of cards and the secret are asked for in torch_ext/agent_bootstrap.cc.
Floor: launcher, in a rank. Thread: any.
"""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from rdmacoll._peer_user import peer_of, same_user

from .caller import HELLO

ASK_TIMEOUT_S = 60.0  # the agent answers at once, unless it is stopped
RETRY_S = 0.02
MAGIC_IDENTITY = b"RDMACOLI"
MAGIC_JOINED = b"RDMACOLJ"


@dataclass(frozen=True)
class Identity:
    """Which rank of which job the agent has started as this process."""

    rank: int
    world: int
    master_addr: str  # of the job's Store
    master_port: int
    start: str  # names this start of all the job's ranks, and no other

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def address_of(agent_pid: int, name: str) -> str:
    """What RDMACOLL_AGENT says."""
    return f"@rdmacoll-{agent_pid}-{name}"


def pid_of_agent(address: str) -> int | None:
    """The agent's, from its address; None where it has none."""
    prefix, _, rest = address.partition("-")
    pid = rest.partition("-")[0]
    return int(pid) if prefix == "@rdmacoll" and pid.isdecimal() else None


def ask_identity(address: str) -> Identity | None:
    """None: the agent has started this process as no rank."""
    with _connect(address) as agent:
        agent.sendall(HELLO.pack(MAGIC_IDENTITY, 0, 0, 0))
        with agent.makefile("rb") as stream:
            refused, text = int.from_bytes(stream.read(4), "little"), stream.read()[4:]
    return None if refused else Identity(**json.loads(text))


def tell_joined(address: str, rank: int, world: int) -> None:
    """The agent counts this rank among those that are left from now on."""
    with _connect(address) as agent:
        agent.sendall(HELLO.pack(MAGIC_JOINED, rank, world, 0))
        agent.recv(1)  # it hangs up once it has counted


def _reach(agent: socket.socket, address: str) -> None:
    deadline = time.monotonic() + ASK_TIMEOUT_S
    while True:
        try:
            agent.connect("\0" + address[1:])
            return
        except BlockingIOError:  # others queue before its door
            if time.monotonic() >= deadline:
                raise
            time.sleep(RETRY_S)


@contextmanager
def _connect(address: str) -> Iterator[socket.socket]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
            agent.settimeout(ASK_TIMEOUT_S)
            _reach(agent, address)
            _, user = peer_of(agent)
            if user != 0 and not same_user(user):
                raise PermissionError(f"user {user} listens there")
            yield agent
    except OSError as error:
        raise RuntimeError(
            f"rdmarun has started this process as a rank, but its agent does not answer at "
            f"RDMACOLL_AGENT='{address}': {error}"
        ) from error
