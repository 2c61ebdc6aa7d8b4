"""How an agent of several hosts finds the others: it gets the key, comes to the star, meets them
over MPI where that can be.

Floor: launcher/meet. Thread: the agent's main one; it waits as long as rdmarun lets it.
"""

import os
import socket
import time
from dataclasses import dataclass

from rdmacoll.launcher.base.comm import Gatherer
from rdmacoll.launcher.base.hosts import Host, master_address
from rdmacoll.launcher.base.limits import make_room
from rdmacoll.launcher.keys.key import Key, NotOfTheJob
from rdmacoll.launcher.keys.key_holder import ask_for_key
from rdmacoll.launcher.keys.secret_file import read_secret_file
from rdmacoll.launcher.star.greeting import dial
from rdmacoll.launcher.star.hub import Hub
from rdmacoll.launcher.star.place import Place
from rdmacoll.launcher.star.port import listen
from rdmacoll.launcher.star.spoke import Spoke

from .shm_space import lacks_shm_space

DIAL_S = 30.0
PLACE_LIMIT_BYTES = 4096


class CannotJoin(RuntimeError):
    """The message says why."""


@dataclass(frozen=True)
class Seat:
    """Which agent this is, as its command line says."""

    hosts: list[str]
    run_id: str
    agent: int
    way: str  # "mpi": it meets the others there, too; "back": they have met long ago
    secret_file: str

    @staticmethod
    def from_arguments(argv: list[str]) -> "Seat":
        """`HOSTS [RUN_ID AGENT mpi|star|back [SECRET_FILE]]`"""
        left_out = ["", "", "0", "star", ""][len(argv) :]
        hosts, run_id, agent, way, secret_file = [*argv, *left_out]
        return Seat(hosts.split(","), run_id, int(agent), way, secret_file)

    @property
    def meets_over_mpi(self) -> bool:
        return self.way == "mpi"

    @property
    def comes_back(self) -> bool:
        return self.way == "back"

    @property
    def host(self) -> str:
        return self.hosts[self.agent]


def job_key(seat: Seat) -> Key:
    """Empty where rdmarun has started the only agent itself."""
    if not seat.run_id:
        return Key(b"", "")
    if seat.secret_file:
        return Key(read_secret_file(seat.secret_file), seat.run_id)
    try:
        return Key(ask_for_key(seat.run_id, seat.agent), seat.run_id)
    except OSError as error:
        raise NotOfTheJob(
            f"rdmarun has left no key for the agent here ({error}): ssh and mpiexec have reached "
            "other machines or users, or namespaces that share no sockets; use "
            "RDMACOLL_SECRET_FILE (docs/SECURITY.md)"
        ) from None


def join(seat: Seat, key: Key) -> tuple[Hub | Spoke, Gatherer]:
    """The star, and what carries the keys and the cards of the first group."""
    if seat.meets_over_mpi and (lacks := lacks_shm_space(socket.gethostname())):
        raise CannotJoin(lacks)
    star = _open_hub(seat, key) if seat.agent == 0 else reach_hub(seat, key)
    if not seat.meets_over_mpi:
        return star, star
    from . import over_mpi  # not at the top: nobody else must load MPI

    if over_mpi.is_of_another_mpi():
        raise CannotJoin(
            "mpiexec is MPICH's, and mpi4py has loaded another MPI's library "
            f"({over_mpi.library()}); use the mpiexec of that library"
        )
    return star, over_mpi.meet(star)


def _open_hub(seat: Seat, key: Key) -> Hub:
    hosts = [Host(name, 1) for name in seat.hosts]
    only_local = all(host.is_local for host in hosts)
    socks = listen(os.environ, only_local)
    make_room(hosts=len(hosts))
    names = [master_address(hosts, socket.gethostname())]
    names += [sock.getsockname()[0] for sock in socks]
    place = Place(names, socks[0].getsockname()[1])
    os.write(1, place.to_line(key))
    hub = Hub(socks, key, len(hosts))
    hub.wait_for_all()
    return hub


def reach_hub(seat: Seat, key: Key) -> Spoke:
    line = bytearray()
    while not line.endswith(b"\n"):
        data = os.read(0, PLACE_LIMIT_BYTES)
        if not data or len(line) > PLACE_LIMIT_BYTES:
            raise EOFError("rdmarun ended before it had said where agent 0 is")
        line += data
    try:
        place = Place.from_line(bytes(line), key)
    except NotOfTheJob:
        raise NotOfTheJob(
            f"the agents on {seat.hosts[0]} and {seat.host} do not know the job's key both: "
            "RDMACOLL_SECRET_FILE has another content on one of them, or somebody else has come in "
            "the place of one"
        ) from None
    try:
        link = dial(key, seat.agent, place, time.monotonic() + DIAL_S)
    except OSError as error:
        raise CannotJoin(
            f"{error}; let {seat.host} connect there, and choose the port with "
            "RDMACOLL_TCP_PORTS=FIRST-LAST, the addresses with RDMACOLL_SOCKET_IFNAME, where a "
            "firewall asks for it"
        ) from None
    return Spoke(link, seat.agent, len(seat.hosts))
