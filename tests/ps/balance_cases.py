"""Loads that are uneven, in a job of two workers and two servers.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
import torch.distributed as dist

from rdmacoll import ps

SHARD = 256 * 1024  # elements; neighbours are at two servers in turn
SHARDS = 8


def case_hot_shards_are_handed_over_while_all_push(kv: ps.KV) -> None:
    kv.init("hot", torch.zeros(SHARDS * SHARD), optimizer=ps.SGD(lr=1.0))
    ones = torch.ones(SHARD)
    done: list[ps.Rebalanced] = []

    def rebalance() -> None:
        done.append(ps.rebalance(over=0.5, timeout=20.0))

    pushes = 0
    thread = threading.Thread(target=rebalance)
    if dist.get_rank() == 0:
        thread.start()
        while thread.is_alive():
            kept = [kv.push_range("hot", number * SHARD, ones) for number in range(0, SHARDS, 2)]
            kv.wait(*kept)
            pushes += 1
        assert len(done) == 1
        assert done[0].before > 1.9, done  # all of it was at one of two servers
        assert done[0].after < 1.1 and done[0].buckets == SHARDS // 4, done
    dist.barrier()
    counts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(counts, pushes)
    found = kv.pull("hot").view(SHARDS, SHARD)
    for number in range(SHARDS):
        wanted = -float(sum(counts)) if number % 2 == 0 else 0.0
        assert found[number].unique().tolist() == [wanted], number


def case_nothing_to_do(_kv: ps.KV) -> None:
    if dist.get_rank() == 0:
        assert ps.rebalance(over=0.0) == ps.Rebalanced(1.0, 1.0, 0)


def case_refusals(_kv: ps.KV) -> None:
    bad: Any = "1"
    for error, words, over, timeout in (
        (TypeError, "over is a str", bad, 1.0),
        (ValueError, "over=-1.0; give 0 or more", -1.0, 1.0),
        (ValueError, "over=2.0; .* less than the timeout of 1.0", 2.0, 1.0),
        (ValueError, "timeout=-1.0", 0.5, -1.0),
    ):
        with pytest.raises(error, match=words):
            ps.rebalance(over=over, timeout=timeout)
