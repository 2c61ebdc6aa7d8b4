"""A server of a job, as `rdmarun --servers` and `rdmacoll ps serve` start it: it holds its part of
the tables until it is told to end.

The main thread answers, in the engine; keeper.py has what is done beside.
Floor: rdmacoll/ps. Thread: the main one.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from .._agent import own_agent
from .._extension import extension
from ..remote.memory.process import backend, face
from ..servers.listener import answer_who_asks
from ..servers.options import JOINS, MOST_SERVERS
from ..servers.status import ENDED, SERVES, ServerStatus
from .base.ending import Ending, StoreLife
from .board import Board, NotAStore, Servers, leave_at_once, reach
from .keeper import (
    BEAT_S,
    MOST_SILENT,
    Called,
    Dropped,
    call_others,
    collect,
    free_dropped,
    hear,
    keep_map,
    say_status,
    superseded,
    watch_others,
    watch_store,
)
from .status import status_of

if TYPE_CHECKING:
    from .. import _C

START_TIMEOUT_S = 300.0
ANSWER_TIMEOUT_S = 30.0  # of a Store that listens; rdmarun's may do so before it is one
JOIN_S = 3.0  # less than what rdmarun waits before it kills
MEMORY_SHARE = 0.5  # of the host's memory


@dataclass(frozen=True)
class Own:
    """Which server this process is."""

    number: int
    start: int  # larger than those of all processes that were this server before
    job: Servers
    memory_bytes: int
    is_by_hand: bool
    joins: bool = False  # it comes while the job runs


def main() -> int:
    """The status of the process."""
    name = os.environ["RDMACOLL_SERVER"]
    signal.signal(signal.SIGTERM, lambda *_: _raise_told())
    signal.signal(signal.SIGINT, lambda *_: _raise_told())
    try:
        return _run(name)
    except Told:
        if own_agent() is None:
            say(name, "was told to end before it has served")
        leave_at_once(0)
    except NotAStore as error:
        say(name, f"cannot serve: {error}")
        leave_at_once(1)
    # Of torch, errors about Stores are RuntimeErrors.
    except (ValueError, RuntimeError, TimeoutError) as error:
        say(name, f"cannot serve: {error}")
        return 1


class Told(Exception):
    """By a signal, to end."""


def _raise_told() -> None:
    raise Told


def say(name: str | int, text: str) -> None:
    print(f"rdmacoll.ps: server {name} {text}", file=sys.stderr, flush=True)


def _run(name: str) -> int:
    """name: the server's number, or JOINS."""
    is_by_hand = own_agent() is None
    board = reach(START_TIMEOUT_S, ANSWER_TIMEOUT_S if is_by_hand else START_TIMEOUT_S)
    meets = dist.PrefixStore(f"rdmacoll.ps.group/{secrets.token_hex(8)}", board.store)
    dist.init_process_group("rdma", store=meets, rank=0, world_size=1)
    own = _join(board) if name == JOINS else _own(board, int(name), is_by_hand)
    number = own.number
    ending = _serve(board, own)
    if own.is_by_hand or ending.is_failure:
        say(number, f"ends: {ending.why}")
    status = 1 if ending.is_failure else 0
    if ending.leaves_threads:
        leave_at_once(status)
    dist.destroy_process_group()
    return status


def _own(board: Board, number: int, is_by_hand: bool) -> Own:
    job = Servers(
        int(os.environ["RDMACOLL_SERVERS"]), int(os.environ.get("RDMACOLL_SERVER_REPLICAS", "2"))
    )
    said_start = os.environ.get("RDMACOLL_SERVER_START")
    start = board.next_start(number) if said_start is None else int(said_start)
    _agree(board, job)
    if start > 0 and is_by_hand:
        _refuse_second(board, number)
    return Own(number, start, job, _memory_bytes(), is_by_hand)


def _join(board: Board) -> Own:
    """One more server than the job began with. It has a number that none has had."""
    deadline = time.monotonic() + START_TIMEOUT_S
    job = board.wait_servers(deadline)
    board.wait_map(deadline)
    number = board.next_server()
    if number >= MOST_SERVERS:
        raise ValueError(f"the job has had {number} servers, as many as it may have")
    return Own(number, 0, job, _memory_bytes(), is_by_hand=True, joins=True)


def _agree(board: Board, job: Servers) -> None:
    agreed = board.agree(job)
    if agreed.count != job.count:
        raise ValueError(
            f"--servers {job.count}: the first server of this job has said {agreed.count}; give "
            "all of them the same number"
        )
    if agreed.replicas != job.replicas:
        raise ValueError(
            f"--replicas {job.replicas}: the first server of this job has said "
            f"{agreed.replicas}; give all of them the same number"
        )


def _refuse_second(board: Board, number: int) -> None:
    """Raises ValueError where another process is this server, and shows that it runs."""
    said = board.status_of(number)
    if not board.is_claimed(number) or said.state == ENDED:
        return
    beats = board.beats_of(number)
    for _ in range(MOST_SILENT):
        time.sleep(BEAT_S)
        if board.beats_of(number) != beats:
            where = f" (pid {said.pid} on {said.host})" if said.pid else ""
            raise ValueError(
                f"the job has a server {number}, which runs{where}; give another --number, or end "
                "that one first"
            )


def _serve(board: Board, own: Own) -> Ending:
    address = backend(None)._address_of(0)
    assert address is not None
    if not board.claim(own.number, own.start):
        raise ValueError(superseded(own.number))
    if own.joins:
        buckets = board.newest_map()
    else:
        buckets = board.first_map(own.job.count, own.job.replicas, _hosts(own.job.count))
    if board.find_server(own.number) is not None:  # what the one before had is lost with it
        buckets = _resign(board, own.number, buckets)
    dropped, before = Dropped(), list[int]()
    dropped.look(board, own.number, before.extend)  # none of them comes back with this server
    server = extension().PsServer(
        face(None),
        address,
        own.number,
        own.job.replicas,
        buckets,
        own.memory_bytes,
        before,
        own.joins,
    )
    board.beat(own.number)  # others miss a server only once it has shown a sign of life
    board.say_server(own.number, own.start, address)
    # Who has claimed to be this server before that may not have seen that this one is there. So it
    # has not resigned what this one has, and this one answers nobody.
    if not board.holds(own.number, own.start):
        raise ValueError(superseded(own.number))
    ending = Ending(server.stop)
    signal.signal(signal.SIGTERM, lambda *_: ending.end("SIGTERM"))
    signal.signal(signal.SIGINT, lambda *_: ending.end("SIGINT"))
    ended = threading.Event()
    beside = _begin(server, board, own, dropped, ending, ended)
    if own.is_by_hand:
        of = "has joined, and" if own.joins else f"of {own.job.count}"
        say(own.number, f"{of} serves (pid {os.getpid()})")
    try:
        server.serve()
    finally:
        for told in signal.SIGTERM, signal.SIGINT:
            signal.signal(told, signal.SIG_IGN)  # the handler holds the server
        ended.set()
    deadline = time.monotonic() + JOIN_S
    for thread in beside:
        thread.join(max(deadline - time.monotonic(), 0.0))
    ending.leaves_threads = any(thread.is_alive() for thread in beside)
    return ending


def _begin(
    server: _C.PsServer,
    board: Board,
    own: Own,
    dropped: Dropped,
    ending: Ending,
    ended: threading.Event,
) -> list[threading.Thread]:
    number, start = own.number, own.start
    called, life = Called(), StoreLife()
    first = ServerStatus(
        number,
        SERVES,
        socket.gethostname(),
        os.getpid(),
        start,
        began_s=time.time(),
        memory_limit_bytes=own.memory_bytes,
    )
    tasks: list[tuple[Any, ...]] = [
        (hear, server, ended),
        (call_others, server, board, number, called, ended),
        (watch_others, server, board, number, called, life, ended),
        (keep_map, server, board, number, start, ending, ended),
        (free_dropped, server, board, number, dropped, ended),
        (collect, board, number, ended),
        (watch_store, life, ending, ended),
        (say_status, board, lambda: _status(server, first), ending, ended),
        (answer_who_asks, lambda: status_of(board).to_text(), ended),
    ]
    beside = [threading.Thread(target=task[0], args=task[1:], daemon=True) for task in tasks]
    for thread in beside:
        thread.start()
    return beside


def _status(server: _C.PsServer, first: ServerStatus) -> ServerStatus:
    rows_of = {str(table): rows for table, rows in server.rows_of().items()}
    steps_of = {str(table): steps for table, steps in server.steps_of().items()}
    counts: dict[str, Any] = server.stats()
    return replace(first, said_s=time.time(), rows_of=rows_of, steps_of=steps_of, **counts)


def _hosts(count: int) -> list[int]:
    """Of each server the number of its host; empty: nobody has said where they are."""
    said = os.environ.get("RDMACOLL_SERVER_HOSTS", "")
    if not said:
        return []
    hosts = said.split(",")
    if len(hosts) != count:
        raise ValueError(
            f"RDMACOLL_SERVER_HOSTS={said!r} names {len(hosts)} hosts; name that of each of the "
            f"{count} servers, as a,b,a,b, or unset it"
        )
    return [hosts.index(host) for host in hosts]


def _resign(board: Board, number: int, buckets: bytes) -> bytes:
    wanted = extension().ps_without(buckets, number)
    while wanted != buckets:
        buckets = board.change_map(buckets, wanted)
        wanted = extension().ps_without(buckets, number)
    return buckets


def _memory_bytes() -> int:
    said = os.environ.get("RDMACOLL_SERVER_MEMORY", "")
    if said:
        return int(said)
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)


if __name__ == "__main__":
    sys.exit(main())
