"""gRPC by grpcio, with no limits to messages: bytes made from a tensor, and copied into another.

There are three forms, and each size takes the one that is quickest before what is measured: a
message over loopback TCP, a message over a Unix socket, and a stream of 1 MB over the latter.
"""

import ctypes
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import torch

from .pair import Pair, Way

SERVICE = "rdmacoll.Transfer"
CHUNK_BYTES = 1 << 20
NO_LIMITS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
TRY_S = 0.1
TRIES = (3, 50)

warnings.filterwarnings("ignore", "The given buffer is not writable")  # nobody writes to a message


class Grpc(Way):
    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._folder = tempfile.TemporaryDirectory(prefix="rdmacoll-bench-")
        if pair.sends:
            tcp, unix = pair.swap(["", ""])
            self._channels = [grpc.insecure_channel(at, NO_LIMITS) for at in (tcp, unix)]
            self._forms = self._make_forms(*self._channels)
        else:
            self._server = grpc.server(ThreadPoolExecutor(1), options=NO_LIMITS)
            handlers = {
                "Put": grpc.unary_unary_rpc_method_handler(self._put),
                "Stream": grpc.stream_unary_rpc_method_handler(self._stream),
            }
            self._server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler(SERVICE, handlers)]
            )
            port = self._server.add_insecure_port("127.0.0.1:0")
            unix = f"unix:{Path(self._folder.name, 'socket')}"
            self._server.add_insecure_port(unix)
            self._server.start()
            pair.swap([f"127.0.0.1:{port}", unix])

    def _make_forms(self, tcp: grpc.Channel, unix: grpc.Channel) -> dict[str, Callable[[], object]]:
        put, stream = f"/{SERVICE}/Put", f"/{SERVICE}/Stream"
        over_tcp, over_unix = tcp.unary_unary(put), unix.unary_unary(put)
        streamed = unix.stream_unary(stream)
        return {
            "tcp": lambda: over_tcp(self._bytes(0, self.source.numel())),
            "unix": lambda: over_unix(self._bytes(0, self.source.numel())),
            "stream": lambda: streamed(self._chunks()),
        }

    def _bytes(self, first: int, count: int) -> bytes:
        return ctypes.string_at(self.source.data_ptr() + first, count)

    def _chunks(self) -> Iterator[bytes]:
        size = self.source.numel()
        for first in range(0, size, CHUNK_BYTES):
            yield self._bytes(first, min(CHUNK_BYTES, size - first))

    def _put(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.target.copy_(_view(request))
        return b""

    def _stream(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        first = 0
        for request in requests:
            self.target[first : first + len(request)].copy_(_view(request))
            first += len(request)
        return b""

    def prepare(self, size_bytes: int) -> None:
        super().prepare(size_bytes)
        self.pair.meet()

    def choose_form(self) -> None:
        times = {form: _median_s(call) for form, call in self._forms.items()}
        self.form = min(times, key=lambda form: times[form])

    def send(self) -> None:
        self._forms[self.form]()

    def close(self) -> None:
        if self.pair.sends:
            for channel in self._channels:
                channel.close()
        self.pair.meet()
        if not self.pair.sends:
            self._server.stop(None).wait()
        self._folder.cleanup()


def _view(data: bytes) -> torch.Tensor:
    return torch.frombuffer(data, dtype=torch.uint8)


def _median_s(call: Callable[[], object]) -> float:
    call()
    least, most = TRIES
    times: list[float] = []
    while len(times) < least or (len(times) < most and sum(times) < TRY_S):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
