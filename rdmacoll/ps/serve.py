"""A server of `rdmarun --servers`: it holds its part of the tables until it is told to end.

The main thread answers, in the engine; keeper.py has what is done beside.
Floor: rdmacoll/ps. Thread: the main one.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import torch.distributed as dist

from .._extension import extension
from ..remote.memory.process import backend, face
from .board import Board
from .keeper import Called, call_others, hear, keep_map, watch_others

START_TIMEOUT_S = 300.0
MEMORY_SHARE = 0.5  # of the host's memory
REPLICAS = 2  # of each bucket, where there are as many servers


def main() -> int:
    """The status of the process."""
    number = int(os.environ["RDMACOLL_SERVER"])
    servers = int(os.environ["RDMACOLL_SERVERS"])
    start = int(os.environ.get("RDMACOLL_SERVER_START", "0"))
    board = Board(START_TIMEOUT_S)
    meets = dist.PrefixStore(f"rdmacoll.ps.group/{number}/{start}", board.store)
    dist.init_process_group("rdma", store=meets, rank=0, world_size=1)
    _serve(board, number, servers, start)
    dist.destroy_process_group()
    return 0


def _serve(board: Board, number: int, servers: int, start: int) -> None:
    own = backend(None)._address_of(0)
    assert own is not None
    buckets = board.first_map(servers, REPLICAS)
    if start > 0:  # what the one before had is lost with it
        buckets = _resign(board, number, buckets)
    server = extension().PsServer(face(None), own, number, REPLICAS, buckets, _memory_bytes())
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    ended = threading.Event()
    others = [other for other in range(servers) if other != number]
    called = Called()
    beside = [
        threading.Thread(target=function, args=arguments, daemon=True)
        for function, arguments in (
            (hear, (server, ended)),
            (call_others, (server, board, others, called, ended)),
            (watch_others, (server, board, number, others, called, ended)),
            (keep_map, (server, board, ended)),
        )
    ]
    for thread in beside:
        thread.start()
    board.say_server(number, start, own)
    try:
        server.serve()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the handler holds the server
        ended.set()
    for thread in beside:
        thread.join()


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
