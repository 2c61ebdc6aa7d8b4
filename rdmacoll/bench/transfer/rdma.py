"""rdmacoll.remote: a write with a notification, which the receiver answers with one of its own.

So the receiver's program has seen the data, too, as with an RPC. The sender's tensor lies in memory
of remote.empty(), or is an ordinary one.
"""

import torch
import torch.distributed as dist

from rdmacoll import remote
from rdmacoll.failure import backend_of

from .pair import Pair, Way


class Remote(Way):
    def __init__(self, pair: Pair, ordinary_source: bool = False) -> None:
        super().__init__(pair)
        self._ordinary_source = ordinary_source
        self._group = dist.new_group(pair.ranks, backend="rdma", use_local_synchronization=True)
        self._exposed: remote.Exposure | None = None
        self._nothing = torch.empty(0, dtype=torch.uint8)

    def prepare(self, size_bytes: int) -> None:
        if self._exposed is not None:
            self._exposed.revoke()
        mine = self._empty(size_bytes)
        if self.pair.sends:
            self.source = torch.zeros_like(mine) if self._ordinary_source else mine
        else:
            self.target = mine
        exposed = self._empty(1) if self.pair.sends else mine
        name = f"{size_bytes} B at "
        self._exposed = remote.expose(exposed, f"{name}{self.pair.rank}", "rw", group=self._group)
        on = dist.get_group_rank(self._group, self.pair.other)
        there = remote.open(f"{name}{self.pair.other}", on=on, group=self._group)
        self._there = there if self.pair.sends else there[:0]
        self._number = 0
        self.pair.meet()

    def _empty(self, size_bytes: int) -> torch.Tensor:
        return remote.empty(size_bytes, dtype=torch.uint8, access="rw", group=self._group)

    def send(self) -> None:
        assert self._exposed is not None
        self._number += 1
        self._there.write(self.source, notify=self._number)
        self._exposed.wait_notify(self._number)

    def serve(self, count: int) -> None:
        assert self._exposed is not None
        for _ in range(count):
            self._number += 1
            self._exposed.wait_notify(self._number)
            self._there.write(self._nothing, notify=self._number)

    def counters(self) -> dict[str, int]:
        return backend_of(self._group)._counters()
