"""A variable that nothing reads is warned of: once, by the first rank of a host."""

from __future__ import annotations

from scripts import finish, start_ranks
from world import host_store

SCRIPT = """
import torch.distributed as dist
for _ in range(2):
    dist.init_process_group("rdma")
    dist.barrier()
    dist.destroy_process_group()
"""
LINE = (
    "[rdmacoll settings] warning: RDMACOLL_TCP_PORT is no setting of rdmacoll; did you mean "
    "RDMACOLL_TCP_PORTS? (docs/ENVIRONMENT.md lists all)"
)


def said_by_ranks(**variables: str) -> list[str]:
    store = host_store()
    ranks = [finish(rank) for rank in start_ranks(store, SCRIPT, 2, **variables)]
    assert [rank.code for rank in ranks] == [0, 0], ranks
    return [rank.output for rank in ranks]


def test_one_line_of_one_rank() -> None:
    first, second = said_by_ranks(RDMACOLL_TCP_PORT="20000-20100", RDMACOLL_NIGHTLY="1")
    assert first.count("is no setting") == 1
    assert LINE in first
    assert "is no setting" not in second


def test_not_below_the_level_of_warnings() -> None:
    for said in said_by_ranks(RDMACOLL_TCP_PORT="20000", RDMACOLL_LOG="error"):
        assert "is no setting" not in said
