"""What pulls of rows are compared with: torch.rpc and gRPC, each with a process that has the same
table and answers with its rows.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import grpc
import torch
from torch.distributed import rpc

from rdmacoll.bench.frame import tensorpipe
from rdmacoll.bench.frame.grpc_ends import Server, channels, message

DIM = 64  # 256 bytes
ROWS = 100_000
NAMES = ["worker", "server"]
SERVICE = "rdmacoll.Rows"


def table() -> torch.Tensor:
    return torch.arange(ROWS * DIM, dtype=torch.float32).reshape(ROWS, DIM)


_table: torch.Tensor


def _rows(ids: torch.Tensor) -> torch.Tensor:
    """Called by the other process."""
    return _table[ids]


def _answer(request: bytes, context: grpc.ServicerContext) -> bytes:
    return message(_table[torch.frombuffer(request, dtype=torch.int64)])


def _serve(folder: str, ours: Connection) -> None:
    global _table
    _table = table()
    torch.set_num_threads(1)
    server = Server(SERVICE, {"Rows": grpc.unary_unary_rpc_method_handler(_answer)}, threads=1)
    ours.send(server.addresses)
    tensorpipe.start(NAMES, 1, folder)
    rpc.shutdown()  # once the other does
    server.close()


@contextmanager
def peers() -> Iterator[dict[str, Callable[[torch.Tensor], torch.Tensor]]]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="rdmacoll-bench-") as folder:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(folder, theirs))
        process.start()
        _, unix = channels(ours.recv())
        ask = unix.unary_unary(f"/{SERVICE}/Rows")
        tensorpipe.start(NAMES, 0, folder)

        def by_grpc(ids: torch.Tensor) -> torch.Tensor:
            answer = ask(message(ids))
            return torch.frombuffer(answer, dtype=torch.float32).view(-1, DIM)

        yield {
            "torch.rpc": lambda ids: rpc.rpc_sync(NAMES[1], _rows, args=(ids,)),
            "gRPC": by_grpc,
        }
        rpc.shutdown()
        unix.close()
        process.join()
