"""What pulls of rows are compared with: torch.rpc and gRPC. Each has a process that has the same
table, and one that asks it; see turns.py.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection

import grpc
import torch
import turns
from torch.distributed import rpc

from rdmacoll.bench.frame import tensorpipe
from rdmacoll.bench.frame.grpc_ends import Server, channels, message

DIM = 64  # 256 bytes
ROWS = 100_000
NAMES = ["asks", "answers"]
SERVICE = "rdmacoll.Rows"
CALLS = 5  # in a turn, of which the median counts

Ask = Callable[[torch.Tensor], torch.Tensor]


def table() -> torch.Tensor:
    return torch.arange(ROWS * DIM, dtype=torch.float32).reshape(ROWS, DIM)


def seconds_of(ask: Ask, ids: torch.Tensor) -> float:
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        ask(ids)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


# --- torch.rpc ------------------------------------------------------------------------------------

_table: torch.Tensor


def _rows(ids: torch.Tensor) -> torch.Tensor:
    """Called by the other process."""
    return _table[ids]


@contextmanager
def _asks_by_rpc(folder: str, other: Connection) -> Iterator[Ask]:
    tensorpipe.start(NAMES, 0, folder)
    yield lambda ids: rpc.rpc_sync(NAMES[1], _rows, args=(ids,))
    rpc.shutdown()


def _answers_by_rpc(folder: str, other: Connection) -> None:
    tensorpipe.start(NAMES, 1, folder)
    rpc.shutdown()  # once the other does


# --- gRPC -----------------------------------------------------------------------------------------


def _answer(request: bytes, context: grpc.ServicerContext) -> bytes:
    return message(_table[torch.frombuffer(request, dtype=torch.int64)])


@contextmanager
def _asks_by_grpc(folder: str, other: Connection) -> Iterator[Ask]:
    _, unix = channels(other.recv())
    call = unix.unary_unary(f"/{SERVICE}/Rows")
    yield lambda ids: torch.frombuffer(call(message(ids)), dtype=torch.float32).view(-1, DIM)
    unix.close()
    other.send("closed")


def _answers_by_grpc(folder: str, other: Connection) -> None:
    server = Server(SERVICE, {"Rows": grpc.unary_unary_rpc_method_handler(_answer)}, threads=1)
    other.send(server.addresses)
    other.recv()
    server.close()


WAYS = {
    "torch.rpc": (_asks_by_rpc, _answers_by_rpc),
    "gRPC": (_asks_by_grpc, _answers_by_grpc),
}

# --- their processes ------------------------------------------------------------------------------


def _run_server(way: str, folder: str, other: Connection) -> None:
    global _table
    _table = table()
    torch.set_num_threads(1)
    WAYS[way][1](folder, other)


def _run_asker(way: str, folder: str, other: Connection, turns: Connection) -> None:
    """Of each ids it is told, says the rows, or how long it takes to have them."""
    torch.set_num_threads(1)
    with WAYS[way][0](folder, other) as ask:
        turns.send("ready")
        while (told := turns.recv()) is not None:
            is_timed, ids = told
            turns.send(seconds_of(ask, ids) if is_timed else ask(ids))


class Peer(turns.Peer):
    def __init__(self, way: str, folder: str) -> None:
        super().__init__(partial(_run_server, way, folder), partial(_run_asker, way, folder))

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        said = self.turn((False, ids))
        assert isinstance(said, torch.Tensor)
        return said

    def seconds(self, ids: torch.Tensor) -> float:
        said = self.turn((True, ids))
        assert isinstance(said, float)
        return said


@contextmanager
def peers() -> Iterator[dict[str, Peer]]:
    with tempfile.TemporaryDirectory(prefix="rdmacoll-bench-") as folder, ExitStack() as stack:
        found = {}
        for way in WAYS:
            found[way] = Peer(way, folder)
            stack.callback(found[way].close)
        yield found
