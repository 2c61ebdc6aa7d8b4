"""How evenly servers are loaded before ps.rebalance() and after it, where some rows are pushed far
more often than others."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import torch
import torch.distributed as dist

from rdmacoll import ps

ROWS, DIM, EXPONENT = 1_000_000, 16, 1.1
BATCHES = (1, 32, 512)  # ids that a push has
LOOK_S = 1.5
Loads = dict[str, list[float]]


def zipf(count: int, seed: int) -> Iterator[torch.Tensor]:
    weights = torch.arange(1, ROWS + 1, dtype=torch.float64) ** -EXPONENT
    below = (weights / weights.sum()).cumsum(0)
    generator = torch.Generator().manual_seed(seed)
    while True:
        drawn = torch.rand(4096, count, generator=generator, dtype=torch.float64)
        yield from torch.searchsorted(below, drawn).clamp_(max=ROWS - 1)


def push_until(stop: threading.Event, kv: ps.KV, name: str, count: int) -> None:
    gradients = torch.ones(count, DIM)
    for ids in zipf(count, dist.get_rank()):
        kv.wait(kv.row_push(name, ids, gradients))
        if stop.is_set():
            return


def loads(kv: ps.KV, _rounds: int) -> dict[str, Loads]:
    """Of each size of pushes what the busiest server has, of the mean: before, what it comes to
    when buckets are handed over, and what is seen afterwards."""
    cases = {}
    for count in BATCHES:
        name = f"pushes of {count} ids"
        kv.init_rows(name, DIM, ROWS, ps.SGD(lr=1e-3))
        stop = threading.Event()
        pushing = threading.Thread(target=push_until, args=(stop, kv, name, count))
        dist.barrier()
        pushing.start()
        if dist.get_rank() == 0:
            done = ps.rebalance(over=LOOK_S)
            seen = ps.rebalance(over=LOOK_S).before
            cases[name] = {
                "before": [done.before],
                "after": [done.after],
                "seen then": [seen],
                "buckets": [float(done.buckets)],
            }
        dist.barrier()
        stop.set()
        pushing.join()
    return cases
