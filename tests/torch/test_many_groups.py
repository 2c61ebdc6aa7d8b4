"""More groups than a process can have at a time, one after the other: nothing is left of them. What
groups do is tested in tests/torch/test_groups.py."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
from cases import check, me
from harness import distributed
from world import client_store

AT_A_TIME = 4095  # kMaxRegions of csrc/base/limits.h
WARM_UP = 500  # groups, while caches and arenas fill
RESIDENT_BYTES_PER_GROUP = 2048  # torch keeps a few hundred itself
STORE_KEYS_PER_GROUP = 7  # of torch itself, and a counter


class Holdings(NamedTuple):
    resident_bytes: int
    mappings: int
    descriptors: int
    store_keys: int

    @classmethod
    def now(cls, store: dist.TCPStore) -> Holdings:
        resident = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert resident
        return cls(
            int(resident[1]) * 1024,
            Path("/proc/self/maps").read_text().count("\n"),
            len(os.listdir("/proc/self/fd")),
            store.num_keys(),
        )


def make_and_destroy(count: int) -> None:
    rank, world = me()
    store = client_store()
    early = Holdings(0, 0, 0, 0)
    for i in range(count):
        if i == WARM_UP:
            early = Holdings.now(store)
        group = dist.new_group(list(range(world)))
        tensor = torch.full((100,), float(rank + i))
        dist.all_reduce(tensor, group=group)
        check(tensor, torch.full((100,), float(sum(r + i for r in range(world)))), "group", i)
        dist.destroy_process_group(group)
    late = Holdings.now(store)
    groups = count - WARM_UP
    print(f"{count} groups: {early} after {WARM_UP}, {late} at the end", flush=True)
    assert late.resident_bytes - early.resident_bytes < groups * RESIDENT_BYTES_PER_GROUP
    assert late.mappings <= early.mappings + 16
    assert late.descriptors <= early.descriptors + 4
    assert late.store_keys - early.store_keys <= groups * STORE_KEYS_PER_GROUP
    dist.barrier()


def test_that_is_the_limit_of_the_engine() -> None:
    limits = Path(__file__).parents[2] / "csrc/base/limits.h"
    assert f"kMaxRegions = {AT_A_TIME};" in limits.read_text()


@distributed(2, fresh=True, deadline_s=280.0)
def test_more_groups_than_at_a_time() -> None:
    make_and_destroy(AT_A_TIME + 905)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@distributed(2, fresh=True, deadline_s=1700.0)
def test_twenty_thousand_groups() -> None:
    make_and_destroy(20_000)
