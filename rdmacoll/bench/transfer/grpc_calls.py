"""gRPC: a message with the tensor, which the receiver's thread copies into the target.

There are three forms, and each size takes the one that is quickest before what is measured: a
message over loopback TCP, a message over a Unix socket, and a stream of 1 MB over the latter.
"""

import statistics
import time
from collections.abc import Callable, Iterator

import grpc

from ..frame.grpc_ends import Server, channels, chunks, message, place
from .pair import Pair, Way

SERVICE = "rdmacoll.Transfer"
TRY_S = 0.1
TRIES = (3, 50)


class Grpc(Way):
    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        if pair.sends:
            self._channels = channels(pair.swap(["", ""]))
            self._forms = self._make_forms(*self._channels)
        else:
            handlers = {
                "Put": grpc.unary_unary_rpc_method_handler(self._put),
                "Stream": grpc.stream_unary_rpc_method_handler(self._stream),
            }
            self._server = Server(SERVICE, handlers, threads=1)
            pair.swap(self._server.addresses)

    def _make_forms(self, tcp: grpc.Channel, unix: grpc.Channel) -> dict[str, Callable[[], object]]:
        put, stream = f"/{SERVICE}/Put", f"/{SERVICE}/Stream"
        over_tcp, over_unix = tcp.unary_unary(put), unix.unary_unary(put)
        streamed = unix.stream_unary(stream)
        return {
            "tcp": lambda: over_tcp(message(self.source)),
            "unix": lambda: over_unix(message(self.source)),
            "stream": lambda: streamed(chunks(self.source)),
        }

    def _put(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        place([request], self.target)
        return b""

    def _stream(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        place(requests, self.target)
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
            self._server.close()


def _median_s(call: Callable[[], object]) -> float:
    call()
    least, most = TRIES
    times: list[float] = []
    while len(times) < least or (len(times) < most and sum(times) < TRY_S):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
