"""Ranks under `ulimit -v`: by default the heap is as large as fits, or there is none, and a warning
says so once. How the size is chosen is tested in tests/unit/engine/heap_size_test.cc."""

from __future__ import annotations

import pytest
from scripts import Finished, finish, start_ranks
from world import backend, host_store

ALL_REDUCE = """
import re, resource
AT_START
import torch, torch.distributed as dist, rdmacoll
AFTER_IMPORT
dist.init_process_group("rdma")
rank = dist.get_rank()
for count in (100, 4_000_000):
    tensor = rdmacoll.empty(count).fill_(rank + 1.0)
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.full((count,), 3.0)), (count, tensor)
print("heap", rdmacoll.in_heap(tensor), rdmacoll.memory_stats()["capacity_bytes"])
dist.destroy_process_group()
"""

# Leaves so much address space beside what torch has mapped by then.
LEAVE = """
mapped = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (mapped + {0},) * 2)
"""
ULIMIT_V = "resource.setrlimit(resource.RLIMIT_AS, (4_000_000 << 10,) * 2)"


def run(
    at_start: str = "", after_import: dict[int, str] | None = None, **variables: str
) -> list[Finished]:
    store = host_store()
    processes = []
    for rank in range(2):
        script = ALL_REDUCE.replace("AT_START", at_start)
        script = script.replace("AFTER_IMPORT", (after_import or {}).get(rank, ""))
        processes += start_ranks(store, script, 2, ranks=[rank], **variables)
    return [finish(process) for process in processes]


@pytest.fixture(autouse=True)
def only_for_rdma() -> None:
    if backend() == "gloo":
        pytest.skip("gloo has no heap")


def check(ranks: list[Finished]) -> None:
    assert [rank.code for rank in ranks] == [0, 0], [rank.output for rank in ranks]


def test_the_usual_limit_of_shared_machines() -> None:
    ranks = run(at_start=ULIMIT_V)
    check(ranks)
    for rank in ranks:
        assert rank.output.count("ulimit -v unlimited") == 1, rank.output


def test_too_little_for_a_heap() -> None:
    ranks = run(after_import={rank: LEAVE.format(250 << 20) for rank in range(2)})
    check(ranks)
    for rank in ranks:
        assert rank.output.count("there is no heap") == 1, rank.output
        assert "heap False 0" in rank.output


def test_a_rank_that_cannot_map_the_other_heap_is_lent_nothing() -> None:
    ranks = run(after_import={1: LEAVE.format(1 << 30)}, RDMACOLL_HEAP_BYTES=str(600 << 20))
    check(ranks)
    assert ranks[0].output.count("heap True") == ranks[1].output.count("heap True") == 1
    assert "ulimit" not in ranks[0].output
    assert ranks[1].output.count("too many to be mapped") == 1, ranks[1].output


def test_a_heap_that_is_asked_for_and_does_not_fit_is_an_error() -> None:
    ranks = run(after_import={1: LEAVE.format(1 << 30)}, RDMACOLL_HEAP_BYTES=str(2 << 30))
    assert ranks[1].code != 0
    for part in (f"RDMACOLL_HEAP_BYTES={2 << 30}", "ulimit -v", "lower"):
        assert part in ranks[1].output, ranks[1].output
    assert ranks[0].code != 0 and "RDMACOLL_HEAP_BYTES" in ranks[0].output, ranks[0].output
