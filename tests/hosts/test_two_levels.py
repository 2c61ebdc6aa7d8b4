"""Collectives over hosts with several ranks: exact, on any layout, and no byte across the network
that need not be there.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.layout import layout
from hosts.ranks import JOIN, Rank, start_ranks
from hosts.stand import Host, MakeHosts

MOST_HOSTS = 3
# Headers of packets, acknowledgements, heartbeats, against the bytes of the plans.
OVERHEAD = 1.03

# Integers, so that every order of folding gives the same. Sizes of one tile and of many, and none
# that parts or ranks divide.
EXACT = (
    JOIN
    + """
backend = dist.group.WORLD._get_backend(torch.device("cpu"))

def values(owner, count):
    return (torch.arange(count, dtype=torch.int64) % 1009 + 1) * (owner + 1)

everybody = sum(range(1, world + 1))
for count in (1, 5, 777, 40_001, 700_003):
    one = values(0, count)
    mine = values(rank, count)
    dist.all_reduce(mine)
    assert torch.equal(mine, one * everybody), ("all_reduce", count)
    for root in range(world):
        mine = values(rank, count)
        dist.reduce(mine, root)
        assert rank != root or torch.equal(mine, one * everybody), ("reduce", count, root)
        mine = values(rank, count)
        dist.broadcast(mine, root)
        assert torch.equal(mine, values(root, count)), ("broadcast", count, root)
    gathered = [torch.empty(count, dtype=torch.int64) for _ in range(world)]
    dist.all_gather(gathered, values(rank, count))
    for owner, block in enumerate(gathered):
        assert torch.equal(block, values(owner, count)), ("all_gather", count)
    block = torch.empty(count, dtype=torch.int64)
    dist.reduce_scatter(block, [values(rank, count) * (to + 1) for to in range(world)])
    assert torch.equal(block, one * everybody * (rank + 1)), ("reduce_scatter", count)
    received = [torch.empty(count, dtype=torch.int64) for _ in range(world)]
    dist.all_to_all(received, [values(rank, count) + to for to in range(world)])
    for owner, block in enumerate(received):
        assert torch.equal(block, values(owner, count) + rank), ("all_to_all", count)
    blocks = [values(rank, count) + to for to in range(world)]
    whole = torch.empty(world * count, dtype=torch.int64)
    dist.all_to_all_single(whole, torch.cat(blocks))
    assert torch.equal(whole, torch.cat(received)), ("all_to_all_single", count)
    for root in range(world):
        at_root = rank == root
        dist.gather(values(rank, count), gathered if at_root else None, root)
        for owner, block in enumerate(gathered if at_root else []):
            assert torch.equal(block, values(owner, count)), ("gather", count, root)
        block = torch.empty(count, dtype=torch.int64)
        dist.scatter(block, blocks if at_root else None, root)
        assert torch.equal(block, values(root, count) + rank), ("scatter", count, root)
    dist.barrier()
say("exact", backend._layout(), backend._algorithm("all_reduce", 1 << 20))
dist.destroy_process_group()
"""
)

# Every rank has the same numbers on every host, so that the counters tell of one collective.
COUNTED = (
    JOIN
    + """
count = {bytes} // 4
data = torch.ones(count)
other = torch.ones(count // world)
def run():
    if {collective!r} == "all_reduce":
        dist.all_reduce(data)
    elif {collective!r} == "broadcast":
        dist.broadcast(data, 1)
    elif {collective!r} == "reduce":
        dist.reduce(data, 1)
    elif {collective!r} == "all_gather":
        dist.all_gather_into_tensor(data, other)
    else:
        dist.reduce_scatter_tensor(other, data)
run()
dist.barrier()
say("ready")
test.recv()
for _ in range({rounds}):
    run()
dist.barrier()
say("done")
test.recv()
dist.destroy_process_group()
"""
)


@pytest.fixture(scope="module")
def hosts(make_hosts: MakeHosts) -> list[Host]:
    return make_hosts(MOST_HOSTS)


@pytest.fixture
def ranks(
    hosts: list[Host], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[list[Rank]]:
    spread, script, env = request.param
    where = layout(spread)
    started = start_ranks(hosts[: len(where.ranks)], where, script, tmp_path, env=env)
    yield started
    for rank in started:
        rank.kill()


@pytest.mark.parametrize(
    ("ranks", "says"),
    [
        (("2x2", EXACT, {}), ["hosts=2x2", "rails"]),
        (("3+1", EXACT, {"RDMACOLL_ALGO": "rails"}), ["hosts=3+1", "rails"]),
        (("1+2+1", EXACT, {"RDMACOLL_ALGO": "rails"}), ["hosts=1+2+1", "rails"]),
        (("2+3+2", EXACT, {"RDMACOLL_ALGO": "rails"}), ["hosts=2+3+2", "rails"]),
        (("2x2", EXACT, {"RDMACOLL_ALGO": "leaders"}), ["hosts=2x2", "leaders"]),
        (("1+3+2", EXACT, {"RDMACOLL_ALGO": "leaders"}), ["hosts=1+3+2", "leaders"]),
        (("2+1", EXACT, {"RDMACOLL_DETERMINISTIC": "layout"}), ["hosts=2+1", "rails"]),
        (("2+1", EXACT, {"RDMACOLL_DETERMINISTIC": "1"}), ["hosts=2+1", "direct"]),
    ],
    indirect=["ranks"],
    ids=lambda value: value[0] if isinstance(value, tuple) else "-".join(value),
)
def test_exact(ranks: list[Rank], says: list[str]) -> None:
    for rank in ranks:
        assert rank.wait_for("exact")[1:] == says
    assert [rank.status() for rank in ranks] == [0] * len(ranks)


@pytest.mark.parametrize("size_bytes", [1 << 20, 8 << 20])
@pytest.mark.parametrize(
    ("collective", "buffers"),
    # Out of a host of two with equally many ranks, or into the other, in sizes of the buffer.
    [
        ("all_reduce", 1.0),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("all_gather", 0.5),
        ("reduce_scatter", 0.5),
    ],
)
def test_bytes_on_the_cable(
    hosts: list[Host], tmp_path: Path, collective: str, buffers: float, size_bytes: int
) -> None:
    rounds = 4
    script = COUNTED.format(bytes=size_bytes, rounds=rounds, collective=collective)
    env = {"RDMACOLL_ALGO": "rails"}
    started = start_ranks(hosts[:2], layout("2x2"), script, tmp_path, env=env)
    try:
        for rank in started:
            rank.wait_for("ready")
        before = [host.traffic() for host in hosts[:2]]
        for rank in started:
            rank.tell()
        for rank in started:
            rank.wait_for("done")
        after = [host.traffic() for host in hosts[:2]]
        most = max(
            late.sent_bytes - early.sent_bytes for early, late in zip(before, after, strict=True)
        )
        expected = buffers * size_bytes * rounds
        assert expected <= most <= expected * OVERHEAD, most / expected
    finally:
        for rank in started:
            rank.tell()
        for rank in started:
            rank.kill()
