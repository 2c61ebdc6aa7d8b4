"""gRPC: a call for the parameters, which are bytes made from a tensor and copied into another, and
one with the gradients likewise.

There are three forms, and each model takes the one that is quickest before what is measured:
messages over loopback TCP, messages over a Unix socket, and streams of 1 MB over the latter.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import grpc
import torch

from ..frame.grpc_ends import Server, channels, chunks, message, place
from .gathering import Gathering
from .team import Team, Way

SERVICE = "rdmacoll.Models"
TRIES = 3
WORKER = "worker"  # the number of who calls


@dataclass(frozen=True)
class Form:
    pull: Callable[[torch.Tensor], None]
    push: Callable[[torch.Tensor], object]


class Grpc(Way):
    _gathering: Gathering

    def __init__(self, team: Team) -> None:
        super().__init__(team)
        if team.holds:
            self._server = Server(SERVICE, self._handlers(), team.workers)
            team.tell(0, self._server.addresses)
        else:
            self._channels = channels(team.tell(0, [""]))
            self._forms = self._make_forms(*self._channels)

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "Pull": grpc.unary_unary_rpc_method_handler(self._pulled),
            "PullStream": grpc.unary_stream_rpc_method_handler(self._pulled_stream),
            "Push": grpc.unary_unary_rpc_method_handler(
                lambda request, context: self._pushed([request], context)
            ),
            "PushStream": grpc.stream_unary_rpc_method_handler(self._pushed),
        }

    def _pulled(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        return message(self._gathering.parameters)

    def _pulled_stream(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        return chunks(self._gathering.parameters)

    def _pushed(self, requests: Iterable[bytes], context: grpc.ServicerContext) -> bytes:
        worker = int(dict(context.invocation_metadata())[WORKER])
        place(requests, self._gathering.gradients[worker])
        self._gathering.step()
        return b""

    def _make_forms(self, tcp: grpc.Channel, unix: grpc.Channel) -> dict[str, Form]:
        stream_in = unix.unary_stream(f"/{SERVICE}/PullStream")
        stream_out = unix.stream_unary(f"/{SERVICE}/PushStream")
        who = [(WORKER, str(self.team.worker))]
        return {
            "tcp": self._of_messages(tcp),
            "unix": self._of_messages(unix),
            "stream": Form(
                lambda into: place(stream_in(b""), into),
                lambda data: stream_out(chunks(data), metadata=who),
            ),
        }

    def _of_messages(self, channel: grpc.Channel) -> Form:
        pull = channel.unary_unary(f"/{SERVICE}/Pull")
        push = channel.unary_unary(f"/{SERVICE}/Push")
        who = [(WORKER, str(self.team.worker))]
        return Form(
            lambda into: place([pull(b"")], into),
            lambda data: push(message(data), metadata=who),
        )

    def prepare(self, elements: int, update: Callable[[], None]) -> None:
        super().prepare(elements, update)
        if self.team.holds:
            self._gathering = Gathering(self.parameters, self.gradients, update)
        self.team.meet()

    def choose_form(self) -> None:
        """All workers try the same, for none gets through a push alone; the first one's counts."""
        times = {} if self.team.holds else {name: self._median_s(name) for name in self._forms}
        self.form = self.team.tell(1, min(times, key=lambda name: times[name], default=""))

    def _median_s(self, form: str) -> float:
        self.form = form
        times = []
        for _ in range(1 + TRIES):
            began = time.perf_counter()
            self.pull()
            self.push()
            times.append(time.perf_counter() - began)
        return statistics.median(times[1:])

    def pull(self) -> None:
        self._forms[self.form].pull(self.parameters)

    def push(self) -> None:
        self._forms[self.form].push(self.gradients[0])

    def close(self) -> None:
        if not self.team.holds:
            for channel in self._channels:
                channel.close()
        self.team.meet()
        if self.team.holds:
            self._server.close()
