"""A rank and its agent, in a role that this process plays: it is stopped, or others keep it busy.

What a real agent answers is tested in tests/launcher/test_rendezvous.py.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from rdmacoll.launcher.agent.caller import HELLO, packed
from world import LOOPBACK, backend, host_store

from rdmacoll.base.agent_protocol import Identity, address_of, ask_identity

LIMIT_S = 60
JOIN = """
import datetime
import torch.distributed as dist
dist.init_process_group("rdma", timeout=datetime.timedelta(seconds=2))
"""


class Agent:
    """Listens with a queue of one caller, and accepts only in the calls below."""

    def __init__(self) -> None:
        self.address = address_of(os.getpid(), secrets.token_hex(8))
        self._strangers: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(LIMIT_S)
        self._listener.bind("\0" + self.address[1:])
        self._listener.listen(0)

    def identify(self, port: int) -> None:
        caller, _ = self._listener.accept()
        with caller:
            caller.recv(HELLO.size)
            identity = Identity(0, 1, LOOPBACK, port, "start")
            caller.sendall((0).to_bytes(4, "little") + packed(identity.to_bytes()))

    def fill_the_queue(self) -> None:
        while True:
            stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._strangers.append(stranger)
            stranger.setblocking(False)
            try:
                stranger.connect("\0" + self.address[1:])
            except BlockingIOError:
                return

    def empty_the_queue(self) -> None:
        for _ in self._strangers[1:]:
            self._listener.accept()[0].close()

    def close(self) -> None:
        for end in [self._listener, *self._strangers]:
            end.close()


@pytest.fixture
def agent() -> Iterator[Agent]:
    if backend() != "rdma":
        pytest.skip("rdmarun's agent is of the backend rdma")
    agent = Agent()
    yield agent
    agent.close()


def test_an_agent_that_does_not_answer_is_an_error_at_the_deadline(agent: Agent) -> None:
    store = host_store()
    environ = {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "RDMACOLL_AGENT": agent.address,
    }
    rank = subprocess.Popen(
        [sys.executable, "-c", JOIN],
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        agent.identify(store.port)
        agent.fill_the_queue()
        output, _ = rank.communicate(timeout=LIMIT_S)
    finally:
        rank.kill()
        rank.wait()
    assert rank.returncode == 1
    assert "rdmarun's agent has no answer yet" in output


def test_a_rank_that_finds_the_queue_full_tries_again(agent: Agent) -> None:
    agent.fill_the_queue()
    asked: list[Identity | None] = []
    asking = threading.Thread(target=lambda: asked.append(ask_identity(agent.address)))
    asking.start()
    time.sleep(0.1)  # it has tried, most likely
    agent.empty_the_queue()
    agent.identify(1234)
    asking.join(LIMIT_S)
    assert asked == [Identity(0, 1, LOOPBACK, 1234, "start")]
