"""A server of `rdmarun --servers`: it holds its part of the tables until it is told to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import torch.distributed as dist

from .._extension import extension
from ..remote.memory.process import backend, face
from .board import Board

START_TIMEOUT_S = 300.0
HEAR_S = 1.0  # between looks whether the server has ended
MEMORY_SHARE = 0.5  # of the host's memory, for the servers of all jobs on it


def main() -> int:
    """The status of the process."""
    number = int(os.environ["RDMACOLL_SERVER"])
    start = int(os.environ.get("RDMACOLL_SERVER_START", "0"))
    board = Board(START_TIMEOUT_S)
    meets = dist.PrefixStore(f"rdmacoll.ps.group/{number}/{start}", board.store)
    dist.init_process_group("rdma", store=meets, rank=0, world_size=1)
    server = extension().PsServer(face(None), _memory_bytes())
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    ended = threading.Event()
    hears = threading.Thread(target=_hear, args=(server, ended), daemon=True)
    hears.start()
    own = backend(None)._address_of(0)
    assert own is not None
    board.say_server(number, start, own)
    try:
        server.serve()
    finally:
        ended.set()
        hears.join()
    dist.destroy_process_group()
    return 0


def _hear(server: Any, ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            server.hear(HEAR_S)
        except Exception as error:  # one that calls and is wrong, or gone, is no end of the server
            print(f"rdmacoll.ps: a worker could not be met: {error}", file=sys.stderr)


def _memory_bytes() -> int:
    said = os.environ.get("RDMACOLL_SERVER_MEMORY", "")
    if said:
        return int(said)
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)


if __name__ == "__main__":
    sys.exit(main())
