"""The two ends of gRPC by grpcio, with no limits to messages: bytes made from a tensor, and copied
into another. They reach each other over loopback TCP and over a Unix socket.
"""

import ctypes
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import torch

CHUNK_BYTES = 1 << 20  # of a stream
NO_LIMITS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]

warnings.filterwarnings("ignore", "The given buffer is not writable")  # nobody writes to a message


class Server:
    """`addresses`: of TCP, on that host, then of the Unix socket."""

    def __init__(
        self,
        service: str,
        handlers: dict[str, grpc.RpcMethodHandler],
        threads: int,
        host: str = "127.0.0.1",
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rdmacoll-bench-")
        self._server = grpc.server(ThreadPoolExecutor(threads), options=NO_LIMITS)
        handler = grpc.method_handlers_generic_handler(service, handlers)
        self._server.add_generic_rpc_handlers([handler])
        port = self._server.add_insecure_port(f"{host}:0")
        unix = f"unix:{Path(self._folder.name, 'socket')}"
        self._server.add_insecure_port(unix)
        self._server.start()
        self.addresses = [f"{host}:{port}", unix]

    def close(self) -> None:
        self._server.stop(None).wait()
        self._folder.cleanup()


def channels(addresses: list[str]) -> list[grpc.Channel]:
    return [grpc.insecure_channel(address, NO_LIMITS) for address in addresses]


def message(tensor: torch.Tensor) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes)


def chunks(tensor: torch.Tensor) -> Iterator[bytes]:
    for first in range(0, tensor.nbytes, CHUNK_BYTES):
        count = min(CHUNK_BYTES, tensor.nbytes - first)
        yield ctypes.string_at(tensor.data_ptr() + first, count)


def place(messages: Iterable[bytes], tensor: torch.Tensor) -> None:
    """The tensor has one dimension."""
    there = tensor.view(torch.uint8)
    first = 0
    for each in messages:
        there[first : first + len(each)].copy_(torch.frombuffer(each, dtype=torch.uint8))
        first += len(each)
