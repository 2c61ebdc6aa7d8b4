"""The process that hosts the job's TCPStore, as torchrun's agent does.

A process of its own because it imports torch, which takes seconds: the agent listens on the port
before the ranks start and hands the socket over, so whoever connects early waits in its backlog.
Floor: launcher/agent, under the agent of host 0. Thread: the store's own.
"""

import os
import signal
import socket
import subprocess
import sys

from rdmacoll.launcher.base.limits import make_most_room
from rdmacoll.launcher.base.processes import die_with_parent

from rdmacoll.base.own_module import own_module

from .rank_env import Master


def listen(only_local: bool) -> socket.socket:
    """A listening socket on a free port, reachable from where the ranks are."""
    if only_local:
        return socket.create_server(("127.0.0.1", 0), backlog=socket.SOMAXCONN)
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=socket.SOMAXCONN
        )
    return socket.create_server(("", 0), backlog=socket.SOMAXCONN)


def start(listener: socket.socket, master: Master) -> "subprocess.Popen[bytes]":
    """Starts the process; it owns the socket from now on and ends with the agent."""
    agent = os.getpid()
    process = subprocess.Popen(
        [
            *own_module("rdmacoll.launcher.agent.store"),
            str(listener.fileno()),
            master.address,
            str(master.port),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[listener.fileno()],
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(signal.SIGKILL, agent),
    )
    listener.close()
    return process


def main() -> None:
    fd, address, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    make_most_room()  # every rank of the job has connections to it
    from torch.distributed import TCPStore

    store = TCPStore(address, port, is_master=True, wait_for_workers=False, master_listen_fd=fd)
    while store is not None:  # until the agent kills us
        signal.pause()
