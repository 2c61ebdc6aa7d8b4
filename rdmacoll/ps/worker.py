"""This process as a worker: its connection to the servers of the job, which it has once."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import torch.distributed as dist

from .._agent import own_agent
from .._extension import extension
from ..failure import backend_of
from ..remote.memory.checks import check_timeout
from ..remote.memory.process import backend, face
from ..servers.options import Address
from ..servers.status import JobStatus
from .board import Board, Table
from .guest import as_address, join
from .status import status_of

if TYPE_CHECKING:
    from .. import _C

T = TypeVar("T")
DEFAULT_TIMEOUT_S = 60.0
DIAL_S = 1.0  # to see whether somebody listens
GONE_S = 2.0  # between looks at a Store that has failed

_lock = threading.Lock()
_connected: Worker | None = None


@dataclass(frozen=True)
class Worker:
    board: Board
    client: _C.PsClient
    pid: int
    guest_of: tuple[Address, str | None] | None  # the job's Store and id; None: this is a rank
    group: dist.ProcessGroup | None  # kept for a guest, which has no other one
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

    def forget_dropped(self) -> None:
        """Tables that some worker has dropped."""
        for name, table in list(self.tables.items()):
            if self.board.find_table(name) != table:
                del self.tables[name]

    def about_store(self) -> str:
        """For the error of a wait in vain: empty, if somebody still listens there."""
        host, _, port = self.board.address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), DIAL_S).close()
        except OSError as error:
            return (
                f"; the job's Store at {self.board.address} cannot be reached ({error}): the job "
                "has ended most likely"
            )
        return ""

    def check_rank(self, what: str, instead: str) -> None:
        """Raises ValueError in a guest."""
        if self.guest_of is not None:
            raise ValueError(
                f"{what} is for the ranks of a group, and this process is a guest of the job at "
                f"{self.board.address}; give {instead}"
            )


def connect(
    timeout: float = DEFAULT_TIMEOUT_S,
    group: dist.ProcessGroup | None = None,
    *,
    store: str | None = None,
    rdzv_id: str | None = None,
) -> None:
    """Meets the servers of the job; a second call returns at once.

    KV() calls it, too: call it to wait for the servers at a time of your own, or as a guest: a
    process that is no rank of the job, and needs no group. timeout: in seconds. group: of the
    backend rdma, by which servers are reached; None is the default group.
    store: of a guest: the job's Store, as "10.0.0.1:29500": its ranks' MASTER_ADDR and MASTER_PORT.
    rdzv_id: of a guest: torchrun's --rdzv-id; None: TORCHELASTIC_RUN_ID, else "none".
    Raises ValueError where the job has no servers, or where this process is of another job already;
    TimeoutError, remote.PeerError; of a guest RuntimeError, where its job has another id or secret.
    Any thread.
    """
    if store is None and rdzv_id is not None:
        raise ValueError(f"rdzv_id={rdzv_id!r} is of a guest; give store, too")
    if store is not None and group is not None:
        raise ValueError(f"store={store!r} is of a guest, which needs no group; leave group out")
    worker(timeout, group, None if store is None else (as_address(store), rdzv_id))


def stats(timeout: float = DEFAULT_TIMEOUT_S, group: dist.ProcessGroup | None = None) -> JobStatus:
    """What the servers of the job do and which tables they have, as each has said it within the
    last second: what `rdmacoll ps status` shows. A server that is silent is looked at again, for a
    second. timeout, group, errors: as of connect()."""
    this = worker(timeout, group)
    return status_of(this.board)


def worker(
    timeout: float, group: dist.ProcessGroup | None, job: tuple[Address, str | None] | None = None
) -> Worker:
    """job: whose guest this process is to be; None: it is so already, or is a rank."""
    check_timeout(timeout)
    global _connected
    with _lock:
        if _connected is None:
            _connected = _connect(timeout, group, job)
        _connected.check_process()
        if job is not None and _connected.guest_of != job:
            raise ValueError(
                f"store='{job[0]}': this process works for the job at {_connected.board.address} "
                "already; start another one"
            )
        return _connected


def _connect(
    timeout: float, group: dist.ProcessGroup | None, job: tuple[Address, str | None] | None
) -> Worker:
    deadline = time.monotonic() + timeout
    if job is None:
        _check_job()
        backend(group)  # its errors come first
        board = Board(timeout)
    else:
        board, group = join(*job, timeout)
    of_group = face(group)
    own = backend(group)._address_of(backend_of(group).rank())
    assert own is not None
    for server in extension().ps_servers(board.wait_map(deadline)):
        board.wait_server(server, deadline)
    left = max(deadline - time.monotonic(), 0.0)
    ask = Directory(board)
    client = extension().PsClient(of_group, own, ask.newest_map, ask.find_server, left)
    return Worker(board, client, os.getpid(), job, group)


class Directory:
    """What the client asks the Board for. A Store that has failed is not asked each time: it stays
    so most likely, and torch writes a page of text for each attempt."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._not_before = 0.0

    def newest_map(self) -> bytes:
        """Raises LookupError where it is not known now; RuntimeError: the Store fails."""
        return self._ask(self._board.newest_map)

    def find_server(self, server: int) -> tuple[bytes, int]:
        """Its address, and how often it was started before. Errors: the same."""
        found = self._ask(partial(self._board.find_server, server))
        if found is None:
            raise LookupError(f"server {server} has not started")
        return found

    def _ask(self, ask: Callable[[], T]) -> T:
        if time.monotonic() < self._not_before:
            raise LookupError("the job's Store has failed")
        try:
            return ask()
        except RuntimeError:
            self._not_before = time.monotonic() + GONE_S
            raise


def _check_job() -> None:
    """rdmarun says whether a job has servers. Others do not know it: there they may come."""
    if own_agent() is not None and "RDMACOLL_SERVERS" not in os.environ:
        raise ValueError("the job has no servers; start it with rdmarun --servers 1, or more")
