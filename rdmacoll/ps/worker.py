"""This process as a worker: its connection to the servers of the job, which it has once."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch.distributed as dist

from .._agent import own_agent
from .._extension import extension
from ..failure import backend_of
from ..remote.memory.checks import check_timeout
from ..remote.memory.process import backend, face
from ..servers.status import JobStatus
from .board import Board, Table
from .status import status_of

if TYPE_CHECKING:
    from .. import _C

DEFAULT_TIMEOUT_S = 60.0

_lock = threading.Lock()
_connected: Worker | None = None


@dataclass(frozen=True)
class Worker:
    board: Board
    client: _C.PsClient
    pid: int
    # What this worker has made: tables, and what has copies of them, which restore() renews.
    tables: dict[str, Table] = field(default_factory=dict)
    copies: WeakSet[Any] = field(default_factory=WeakSet)

    def check_process(self) -> None:
        """Raises RuntimeError in a forked child, which has its parent's connection to the Store."""
        if os.getpid() != self.pid:
            raise RuntimeError(
                "this process was forked from the one that has met the servers; use them there, or "
                "start processes with the method 'spawn'"
            )


def connect(timeout: float = DEFAULT_TIMEOUT_S, group: dist.ProcessGroup | None = None) -> None:
    """Meets the servers of the job; a second call returns at once.

    KV() calls it, too: call it to wait for the servers at a time of your own. timeout: in seconds.
    group: of the backend rdma, by which servers are reached; None is the default group.
    Raises ValueError where the job has no servers, TimeoutError, remote.PeerError. Any thread.
    """
    worker(timeout, group)


def stats(timeout: float = DEFAULT_TIMEOUT_S, group: dist.ProcessGroup | None = None) -> JobStatus:
    """What the servers of the job do and which tables they have, as each has said it within the
    last second: what `rdmacoll ps status` shows. A server that is silent is looked at again, for a
    second. timeout, group, errors: as of connect()."""
    this = worker(timeout, group)
    return status_of(this.board)


def worker(timeout: float, group: dist.ProcessGroup | None) -> Worker:
    check_timeout(timeout)
    global _connected
    with _lock:
        if _connected is None:
            _connected = _connect(timeout, group)
        _connected.check_process()
        return _connected


def _connect(timeout: float, group: dist.ProcessGroup | None) -> Worker:
    _check_job()
    deadline = time.monotonic() + timeout
    of_group = face(group)
    own = backend(group)._address_of(backend_of(group).rank())
    assert own is not None
    board = Board(timeout)
    servers = board.wait_servers(deadline).count
    for server in range(servers):
        board.wait_server(server, deadline)
    left = max(deadline - time.monotonic(), 0.0)
    client = extension().PsClient(
        of_group, own, servers, board.newest_map, partial(_found, board), left
    )
    return Worker(board, client, os.getpid())


def _found(board: Board, server: int) -> tuple[bytes, int]:
    found = board.find_server(server)
    if found is None:
        raise LookupError(f"server {server} has not started")
    return found


def _check_job() -> None:
    """rdmarun says whether a job has servers. Others do not know it: there they may come."""
    if own_agent() is not None and "RDMACOLL_SERVERS" not in os.environ:
        raise ValueError("the job has no servers; start it with rdmarun --servers 1, or more")
