"""Every call of torch.distributed once, of one size, its result compared with plain math.

Small whole numbers, so that every order of folding gives the same bits. All ranks of the group call
check_all() alike.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

PERIOD = 1009  # a prime, so that no tile looks like another

Make = Callable[[int], Tensor]  # a tensor of so many float32


def check_all(size_bytes: int, group: Any, make: Make) -> int:
    """AssertionError at the first wrong result; else how many calls it made."""
    calls = Calls(size_bytes // 4, group, make)
    checks = (
        *(calls.all_reduce, calls.reduce, calls.broadcast, calls.gather, calls.scatter),
        *(calls.all_gather, calls.all_gather_into_tensor, calls.all_gather_coalesced),
        *(calls.reduce_scatter, calls.reduce_scatter_tensor, calls.all_reduce_coalesced),
        *(calls.all_to_all, calls.all_to_all_single, calls.all_to_all_uneven),
        *(calls.send_to_each, calls.shift, calls.in_flight_at_once, calls.barrier),
    )
    for check in checks:
        check()
    return len(checks)


class Calls:
    """The size is that of the whole tensor where it is divided among the ranks."""

    def __init__(self, count: int, group: Any, make: Make) -> None:
        self.count, self.group, self.make = count, group, make
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.block = max(count // self.size, 1)
        self.total = sum(range(1, self.size + 1))

    def of(self, rank: int, count: int, step: int = 0) -> Tensor:
        """What a rank gives."""
        given = self.make(count)
        return given.copy_(((torch.arange(count) + 31 * step) % PERIOD) * (rank + 1))

    def mine(self, count: int, step: int = 0) -> Tensor:
        return self.of(self.rank, count, step)

    def empty(self, count: int) -> Tensor:
        return self.make(count).fill_(-1)

    def expect(self, call: str, found: Tensor, expected: Tensor) -> None:
        wrong = torch.nonzero(found != expected)
        where = f"{call} of {self.count} elements on rank {self.rank} of {self.size}"
        assert len(wrong) == 0, f"{where}: {len(wrong)} are wrong, the first at {wrong[0].item()}"

    def sum(self, count: int, step: int = 0) -> Tensor:
        return self.of(0, count, step) * self.total

    # --- reductions -------------------------------------------------------------------------------

    def all_reduce(self) -> None:
        tensor = self.mine(self.count)
        dist.all_reduce(tensor, group=self.group)
        self.expect("all_reduce", tensor, self.sum(self.count))
        tensor = self.mine(self.count)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self.group)
        self.expect("all_reduce of MAX", tensor, self.of(self.size - 1, self.count))

    def reduce(self) -> None:
        for root in range(self.size):
            tensor = self.mine(self.count)
            dist.reduce(tensor, group_dst=root, group=self.group)
            if self.rank == root:
                self.expect("reduce", tensor, self.sum(self.count))

    def reduce_scatter(self) -> None:
        out = self.empty(self.block)
        given = [self.mine(self.block, step) for step in range(self.size)]
        dist.reduce_scatter(out, given, group=self.group)
        self.expect("reduce_scatter", out, self.sum(self.block, self.rank))

    def reduce_scatter_tensor(self) -> None:
        out = self.empty(self.block)
        given = self.make(self.block * self.size)
        for step, part in enumerate(given.split(self.block)):
            part.copy_(self.mine(self.block, step))
        dist.reduce_scatter_tensor(out, given, group=self.group)
        self.expect("reduce_scatter_tensor", out, self.sum(self.block, self.rank))

    def all_reduce_coalesced(self) -> None:
        tensors = [self.mine(self.block, step) for step in range(3)]
        dist.all_reduce_coalesced(tensors, group=self.group)
        for step, tensor in enumerate(tensors):
            self.expect("all_reduce_coalesced", tensor, self.sum(self.block, step))

    # --- what moves data --------------------------------------------------------------------------

    def broadcast(self) -> None:
        for root in range(self.size):
            tensor = self.mine(self.count)
            dist.broadcast(tensor, group_src=root, group=self.group)
            self.expect("broadcast", tensor, self.of(root, self.count))

    def gather(self) -> None:
        for root in range(self.size):
            outs = [self.empty(self.block) for _ in range(self.size)] if self.rank == root else None
            dist.gather(self.mine(self.block), outs, group_dst=root, group=self.group)
            for rank, out in enumerate(outs or ()):
                self.expect("gather", out, self.of(rank, self.block))

    def scatter(self) -> None:
        for root in range(self.size):
            out, given = self.empty(self.block), None
            if self.rank == root:
                given = [self.mine(self.block, step) for step in range(self.size)]
            dist.scatter(out, given, group_src=root, group=self.group)
            self.expect("scatter", out, self.of(root, self.block, self.rank))

    def all_gather(self) -> None:
        outs = [self.empty(self.block) for _ in range(self.size)]
        dist.all_gather(outs, self.mine(self.block), group=self.group)
        for rank, out in enumerate(outs):
            self.expect("all_gather", out, self.of(rank, self.block))

    def all_gather_into_tensor(self) -> None:
        out = self.empty(self.block * self.size)
        dist.all_gather_into_tensor(out, self.mine(self.block), group=self.group)
        for rank, part in enumerate(out.split(self.block)):
            self.expect("all_gather_into_tensor", part, self.of(rank, self.block))

    def all_gather_coalesced(self) -> None:
        outs = [[self.empty(self.block) for _ in range(2)] for _ in range(self.size)]
        given = [self.mine(self.block, step) for step in range(2)]
        dist.all_gather_coalesced(outs, given, group=self.group)
        for rank, of_rank in enumerate(outs):
            for step, out in enumerate(of_rank):
                self.expect("all_gather_coalesced", out, self.of(rank, self.block, step))

    def all_to_all(self) -> None:
        outs = [self.empty(self.block) for _ in range(self.size)]
        given = [self.mine(self.block, step) for step in range(self.size)]
        dist.all_to_all(outs, given, group=self.group)
        for rank, out in enumerate(outs):
            self.expect("all_to_all", out, self.of(rank, self.block, self.rank))

    def all_to_all_single(self) -> None:
        self._all_to_all_single([self.block] * self.size, [self.block] * self.size)

    def all_to_all_uneven(self) -> None:
        """Rank i gives rank j a block, but for one element per step from i to j."""
        sent = [self._uneven(self.rank, other) for other in range(self.size)]
        received = [self._uneven(other, self.rank) for other in range(self.size)]
        self._all_to_all_single(sent, received)

    def _uneven(self, source: int, target: int) -> int:
        return max(self.block - (target - source) % self.size, 0)

    def _all_to_all_single(self, sent: list[int], received: list[int]) -> None:
        out, given = self.empty(sum(received)), self.make(sum(sent))
        for step, part in enumerate(given.split(sent)):
            part.copy_(self.mine(len(part), step))
        dist.all_to_all_single(out, given, received, sent, group=self.group)
        for rank, part in enumerate(out.split(received)):
            self.expect("all_to_all_single", part, self.of(rank, len(part), self.rank))

    # --- messages ---------------------------------------------------------------------------------

    def send_to_each(self) -> None:
        """Between each two, first one way and then the other."""
        for other in range(self.size):
            if other == self.rank:
                continue
            for sends in (self.rank < other, self.rank > other):
                if sends:
                    dist.send(self.mine(self.count), group_dst=other, group=self.group)
                    continue
                got = self.empty(self.count)
                dist.recv(got, group_src=other, group=self.group)
                self.expect("recv", got, self.of(other, self.count))

    def shift(self) -> None:
        """Each to all others at once."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        outs = {rank: self.empty(self.count) for rank in others}
        given = self.mine(self.count)
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.irecv, outs[rank], group=self.group, group_peer=rank)
                for rank in others
            ]
            + [dist.P2POp(dist.isend, given, group=self.group, group_peer=rank) for rank in others]
        )
        for work in works:
            work.wait()
        for rank in others:
            self.expect("irecv", outs[rank], self.of(rank, self.count))

    # --- several, and none ------------------------------------------------------------------------

    def in_flight_at_once(self) -> None:
        sums = [self.mine(self.block, step) for step in range(4)]
        outs = [self.empty(self.block) for _ in range(self.size)]
        works = [dist.all_reduce(tensor, group=self.group, async_op=True) for tensor in sums]
        works.append(dist.all_gather(outs, self.mine(self.block), group=self.group, async_op=True))
        for work in works:
            work.wait()
        for step, tensor in enumerate(sums):
            self.expect("all_reduce in flight", tensor, self.sum(self.block, step))
        for rank, out in enumerate(outs):
            self.expect("all_gather in flight", out, self.of(rank, self.block))

    def barrier(self) -> None:
        dist.barrier(group=self.group)
