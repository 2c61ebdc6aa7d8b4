"""Keys are exchanged once: after warm-up a collective registers no memory and negotiates nothing.

Called by collectives.py in every rank.
"""

from __future__ import annotations

import itertools

import torch
import torch.distributed as dist
from paths import backend

ROUNDS = 1000
COUNTS = (1, 1000, 20_001)  # inside a signal; one slot; several slots
WARM_UP = 3


def check_steady_state() -> str:
    """AssertionError if 1,000 all_reduces add to the counters; else a line for the log."""
    rank, world = dist.get_rank(), dist.get_world_size()
    tensors = [torch.zeros(count) for count in COUNTS]
    for tensor in tensors * WARM_UP:
        dist.all_reduce(tensor)
    before = backend()._counters()
    for tensor in itertools.islice(itertools.cycle(tensors), ROUNDS):
        tensor.fill_(rank + 1)
        dist.all_reduce(tensor)
        assert tensor[-1].item() == world * (world + 1) // 2
    after = backend()._counters()
    added = {kind: after[kind] - before[kind] for kind in before}
    over_verbs = any(way == "verbs" for _, way, _ in backend()._paths())
    assert before["registrations"] > 0 or not over_verbs, f"set-up registered nothing? {before}"
    assert not any(added.values()), f"{ROUNDS} all_reduces on rank {rank} added {added}"
    return f"{ROUNDS} all_reduces added {added} to {before}"
