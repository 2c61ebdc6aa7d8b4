"""gloo's send and recv, and a reply of one element."""

import torch
import torch.distributed as dist

from .pair import Pair, Way


class Gloo(Way):
    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._group = dist.new_group(pair.ranks, backend="gloo", use_local_synchronization=True)
        self._reply = torch.zeros(1, dtype=torch.uint8)

    def send(self) -> None:
        dist.send(self.source, self.pair.other, group=self._group)
        dist.recv(self._reply, self.pair.other, group=self._group)

    def serve(self, count: int) -> None:
        for _ in range(count):
            dist.recv(self.target, self.pair.other, group=self._group)
            dist.send(self._reply, self.pair.other, group=self._group)
