"""Steps of a recommender with ps.EmbeddingBag beside one whose rows a process of torch.rpc has."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import nn, optim
from torch.distributed import rpc
from torch.nn import functional
from turns import Peer, Seconds, in_turns

from rdmacoll import ps
from rdmacoll.bench.frame import tensorpipe

ROWS, DIM, IDS = 100_000, 64, 10  # of a bag
BAGS = (32, 256, 1024)  # of a batch
RATE = 0.1
STEPS = 5  # in a turn, of which the median counts
NAMES = ["trains", "answers"]
ATOL = 1e-5

# --- the rows at a process of torch.rpc: what torch's users write ---------------------------------

_table: torch.Tensor


def _rows(ids: torch.Tensor) -> torch.Tensor:
    """Called by the other process, like the next one."""
    return _table[ids]


def _step(ids: torch.Tensor, gradients: torch.Tensor) -> None:
    _table.index_add_(0, ids, gradients, alpha=-RATE)


class _Pulled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _anchor: torch.Tensor, bag: RpcBag, ids: torch.Tensor) -> Any:
        ctx.bag, ctx.ids = bag, ids
        bag.wait()
        return rpc.rpc_sync(NAMES[1], _rows, args=(ids,))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        ctx.bag.pushed.append(rpc.rpc_async(NAMES[1], _step, args=(ctx.ids, *gradients)))
        return None, None, None


class RpcBag(nn.Module):
    """Pulls each row of a batch once, and pushes gradients while other work goes on: as ours."""

    def __init__(self) -> None:
        super().__init__()
        self.pushed: list[Any] = []

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        unique, places = torch.unique(ids, return_inverse=True)
        rows = _Pulled.apply(torch.empty(0, requires_grad=True), self, unique)
        return functional.embedding_bag(places, rows, mode="sum")

    def wait(self) -> None:
        pushed, self.pushed = self.pushed, []
        for one in pushed:
            one.wait()


# --- what both train ------------------------------------------------------------------------------


class Trainer:
    def __init__(self, bag: Any, rows: Callable[[], torch.Tensor]) -> None:
        """rows: all of them, as they are now."""
        torch.manual_seed(0)
        self._bag, self.rows = bag, rows
        self._dense = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 1))
        self._optimizer = optim.SGD(self._dense.parameters(), lr=RATE)
        self._data = torch.Generator().manual_seed(1)

    def seconds(self, bags: int) -> float:
        """A step with so many bags takes."""
        times = []
        for _ in range(STEPS):
            ids = torch.randint(ROWS, (bags, IDS), generator=self._data)
            wanted = (ids.sum(1) % 2).float()
            began = time.perf_counter()
            self._optimizer.zero_grad()
            logits = self._dense(self._bag(ids)).flatten()
            functional.binary_cross_entropy_with_logits(logits, wanted).backward()
            self._optimizer.step()
            times.append(time.perf_counter() - began)
        self._bag.wait()  # nothing is under way when others have their turn
        return statistics.median(times)


def beginning() -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.rand(ROWS, DIM, generator=generator) - 0.5


def _has_rows(folder: str, _other: Connection) -> None:
    global _table
    _table = beginning()
    torch.set_num_threads(1)
    tensorpipe.start(NAMES, 1, folder)
    rpc.shutdown()  # once the other does


def _trains(folder: str, _other: Connection, turns: Connection) -> None:
    torch.set_num_threads(1)
    tensorpipe.start(NAMES, 0, folder)
    every_row = torch.arange(ROWS)
    trainer = Trainer(RpcBag(), lambda: rpc.rpc_sync(NAMES[1], _rows, args=(every_row,)))
    turns.send("ready")
    while (bags := turns.recv()) is not None:
        turns.send(trainer.seconds(bags) if bags > 0 else trainer.rows())
    rpc.shutdown()


def recommender(kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    bag = ps.EmbeddingBag("bags", DIM, ROWS, mode="sum", optimizer=ps.SGD(lr=RATE))
    every_row = torch.arange(ROWS)
    kv.init_rows("bags", DIM, ROWS, ps.SGD(lr=RATE))
    kv.wait(kv.row_push("bags", every_row, beginning() / -RATE))
    trainer = Trainer(bag, lambda: kv.row_pull("bags", every_row))
    cases = {}
    with tempfile.TemporaryDirectory(prefix="rdmacoll-bench-") as folder:
        peer = Peer(partial(_has_rows, folder), partial(_trains, folder))
        for bags in BAGS:
            ways: Any = {
                "servers": partial(trainer.seconds, bags),
                "torch.rpc": partial(peer.turn, bags),
            }
            cases[f"a step, {bags} bags"] = in_turns(rounds, ways)
        theirs = peer.turn(0)
        assert isinstance(theirs, torch.Tensor)
        if not torch.allclose(trainer.rows(), theirs, rtol=0, atol=ATOL):
            raise SystemExit("torch.rpc has trained to other rows than the servers")
        peer.close()
    return cases
