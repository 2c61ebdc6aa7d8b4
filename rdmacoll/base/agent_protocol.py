"""The side of a rank or a helper in the agent's protocol, in Python: it asks which it is, a rank
says that it has joined, and the mount that it is there. torch_ext/join/agent_bootstrap.cc exchanges
payloads and asks for the secret.

Floor: rdmacoll/base. Thread: any.
"""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final

from .peer_user import peer_of, same_user_or_root
from .reach import reach

HELLO = struct.Struct("<8sIII")  # magic, rank, world, length of what follows
# What RDMACOLL_ELASTIC says: the rank is of those that make the job's first group, or comes later.
STARTS: Final = "starts"
JOINS: Final = "joins"
MOUNT: Final = "the mount"  # what shows the servers' files (rdmarun --mount), as people call it

ASK_TIMEOUT_S = 60.0  # the agent answers at once, unless it is stopped
MAGIC_IDENTITY = b"RDMACOLI"
MAGIC_JOINED = b"RDMACOLJ"
MAGIC_THERE = b"RDMACOLT"
MAGIC_DUMPS = b"RDMACOLD"
_ANSWER = struct.Struct("<II")  # whether it refuses, and the length of the text that follows


@dataclass(frozen=True)
class Identity:
    """Which rank or helper of which job the agent has started as this process."""

    rank: int | None  # None: it is a helper
    world: int  # how many ranks there are
    master_addr: str  # of the job's Store
    master_port: int
    start: str  # differs for each start of all the job's ranks, and from those of other jobs
    helper: str | None = None  # "server 0", or MOUNT

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def address_of(agent_pid: int, name: str) -> str:
    """What RDMACOLL_AGENT is set to."""
    return f"@rdmacoll-{agent_pid}-{name}"


def pid_of_agent(address: str) -> int | None:
    """The process id that an agent's address contains; None if it contains none."""
    prefix, _, rest = address.partition("-")
    pid = rest.partition("-")[0]
    return int(pid) if prefix == "@rdmacoll" and pid.isdecimal() else None


def ask_identity(address: str) -> Identity | None:
    """None if the agent has started this process neither as a rank nor as a helper."""
    with _connect(address) as agent:
        agent.sendall(HELLO.pack(MAGIC_IDENTITY, 0, 0, 0))
        with agent.makefile("rb") as stream:
            answer = stream.read()
        if len(answer) < _ANSWER.size:
            raise ConnectionError("it hung up without an answer")
    refused, _ = _ANSWER.unpack_from(answer)
    return None if refused else Identity(**json.loads(answer[_ANSWER.size :]))


def tell_joined(address: str, rank: int, world: int) -> None:
    """From now on the agent counts this rank among those that are left."""
    _tell(address, HELLO.pack(MAGIC_JOINED, rank, world, 0), "to count this rank")


def tell_there(address: str) -> None:
    """Of the mount: from now on ranks may use it."""
    _tell(address, HELLO.pack(MAGIC_THERE, 0, 0, 0), "to start ranks")


def _tell(address: str, message: bytes, what: str) -> None:
    with _connect(address) as agent:
        agent.sendall(message)
        if agent.recv(1):  # a refusal; else it hangs up once it has heard
            raise ConnectionError(f"it refuses {what}")


def ask_dumps(address: str) -> tuple[int, list[tuple[str, str]]]:
    """What all ranks of a job are doing: which host this is, and each host's name and answer.

    An answer is empty if there is none; else it is JSON, a list of
    [rank, process id, dump, why there is none]. Any process of the user may ask.
    """
    with _connect(address) as agent:
        agent.sendall(HELLO.pack(MAGIC_DUMPS, 0, 0, 0))
        with agent.makefile("rb") as stream:
            answer = stream.read()
    if len(answer) < _ANSWER.size or _ANSWER.unpack_from(answer)[0] != 0:
        raise RuntimeError(f"the agent at {address} does not say what the ranks are doing")
    own, hosts = json.loads(answer[_ANSWER.size :])
    return own, [(name, report) for name, report in hosts]


@contextmanager
def _connect(address: str) -> Iterator[socket.socket]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
            reach(agent, "\0" + address[1:], ASK_TIMEOUT_S)
            _, user = peer_of(agent)
            if not same_user_or_root(user):
                raise PermissionError(f"user {user} listens there")
            yield agent
    except OSError as error:
        raise RuntimeError(
            f"rdmarun has started this process, but its agent does not answer at "
            f"RDMACOLL_AGENT='{address}': {error}"
        ) from error
