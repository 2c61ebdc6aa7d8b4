"""Ranks that lose another one, or the wire: each ends with an error that says so, in bounded time.

RDMACOLL_TRANSPORT=verbs python tests/rdma/lost_ranks.py
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import forked_ranks
import torch
import torch.distributed as dist
from forked_ranks import Body, world_of
from links import link_down, wire_of

import rdmacoll

# 0.27 s x 4, not 1.9 s. With a shorter timeout Soft-RoCE stands still (docs/SOFTROCE.md).
QUICK = {"RDMACOLL_IB_RETRY_CNT": "3"}
BOUND_S = 10.0  # against about 1.3 s, on processors that are shared
ELEMENTS = (1, 100_000)  # inside a signal; many slots
BEFORE = 50  # operations that go well
LARGE_ELEMENTS = 4_000_000  # for some 200 ms
STILL_TIMEOUT = timedelta(seconds=4)
STALL = {"RDMACOLL_STALL_TIMEOUT_MS": "5000"}
STALL_LIMIT_S = 60.0


def reduce_until_it_fails(elements: int) -> tuple[str, float]:
    """What ended it, and for how long the last operation had waited."""
    tensor = torch.ones(elements)
    while True:
        began = time.monotonic()
        try:
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
        except RuntimeError as error:
            return str(error), time.monotonic() - began


def expect(rank: int, pattern: str, said: str, waited_s: float) -> None:
    assert re.search(pattern, said, re.DOTALL), f"rank {rank} was told {said!r}, not {pattern!r}"
    assert waited_s < BOUND_S, f"rank {rank} was told after {waited_s:.1f} s"
    print(f"rank {rank}, after {waited_s * 1000:.0f} ms: {said}", flush=True)


def one_is_killed(victim: int, elements: int) -> Body:
    """While the others are in an operation with it."""

    def body(rank: int, _store: dist.Store) -> None:
        tensor = torch.ones(elements)
        for _ in range(BEFORE):
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
        if rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        expect(rank, rf"rank {victim}\b", *reduce_until_it_fails(elements))
        go_on_in_smaller_group(elements)

    return body


def go_on_in_smaller_group(elements: int) -> None:
    """Over the links that there are."""
    began = time.monotonic()
    rdmacoll.shrink_group()
    world = dist.get_world_size()
    for _ in range(BEFORE):
        tensor = torch.full((elements,), float(dist.get_rank() + 1))
        dist.all_reduce(tensor)
        assert bool((tensor == world * (world + 1) // 2).all()), tensor
    print(f"{world} ranks went on within {time.monotonic() - began:.1f} s", flush=True)


def link_is_lost(device: str) -> Body:
    """Rank 0 takes down the wire of its own device."""

    def body(rank: int, store: dist.Store) -> None:
        tensor = torch.ones(1)
        for _ in range(BEFORE):
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
        if rank == 0:
            with link_down(device):
                expect(rank, "link is down|retr|rank 1", *reduce_until_it_fails(1))
                store.wait(["told"])
        else:
            expect(rank, "IBV_WC_RETRY_EXC_ERR|rank 0", *reduce_until_it_fails(1))
            store.set("told", "")

    return body


def stands_still(rank: int, store: dist.Store) -> None:
    """Rank 1 is stopped in the middle of an operation, for longer than that may take. When it goes
    on, it must not write into what rank 0 has got back."""
    store.set(f"pid {rank}", str(os.getpid()))
    tensor = rdmacoll.zeros(LARGE_ELEMENTS)
    dist.all_reduce(tensor)
    work = dist.all_reduce(tensor, async_op=True)
    if rank == 1:
        expect(rank, "Timed out|gave the group up|is gone", *ends_with(work))
        store.set("told", "")
        return
    other = int(store.get("pid 1"))
    time.sleep(0.03)
    os.kill(other, signal.SIGSTOP)
    try:
        expect(rank, r"Timed out after .* waits for rank\(s\) 1", *ends_with(work))
        tensor.fill_(7)
    finally:
        os.kill(other, signal.SIGCONT)
    store.wait(["told"])
    assert bool((tensor == 7).all()), "the rank that stood still has written afterwards"


def does_not_run(rank: int, store: dist.Store) -> None:
    """Rank 1 is stopped, and given up long before any timeout: nobody hears its heart."""
    store.set(f"pid {rank}", str(os.getpid()))
    tensor = torch.ones(1)
    for _ in range(BEFORE):
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        said, _ = reduce_until_it_fails(1)
        assert re.search("gave the group up|is gone", said), said
        return
    said, waited_s = reduce_until_it_fails(1)
    os.kill(int(store.get("pid 1")), signal.SIGCONT)
    assert "rank 1 does not run" in said, said
    assert waited_s < STALL_LIMIT_S, waited_s
    print(f"rank 0, after {waited_s:.1f} s: {said}", flush=True)


def ends_with(work: dist.Work) -> tuple[str, float]:
    """Its error, and how long that took."""
    began = time.monotonic()
    try:
        work.wait()
    except RuntimeError as error:
        return str(error), time.monotonic() - began
    return "no error", time.monotonic() - began


def run(
    name: str, world: int, body: Body, statuses: list[int], timeout: timedelta | None = None
) -> None:
    """SystemExit unless the ranks of this group end so."""

    def in_group(rank: int, store: dist.Store) -> None:
        with world_of(world, rank, store, timeout):
            body(rank, store)

    forked_ranks.run(name, world, in_group, statuses)


def main() -> None:
    torch.set_num_threads(1)
    os.environ |= QUICK
    for elements in ELEMENTS:
        name = f"rank 2 of 3 is killed among all_reduces of {elements} elements"
        run(name, 3, one_is_killed(2, elements), [0, 0, -signal.SIGKILL])
    run("rank 1 of 2 is stopped for a while", 2, stands_still, [0, 0], STILL_TIMEOUT)
    os.environ |= STALL
    run("rank 1 of 2 does not run", 2, does_not_run, [0, 0])
    del os.environ["RDMACOLL_STALL_TIMEOUT_MS"]
    devices = sorted(path.name for path in Path("/sys/class/infiniband").glob("*"))
    wired = [device for device in devices if wire_of(device)]
    if len(wired) >= 2:
        run(f"the link of {wired[0]} goes down", 2, link_is_lost(wired[0]), [0, 0])
    else:
        print("NOT RUN, the loss of a link: no two devices on wires of their own", file=sys.stderr)


if __name__ == "__main__":
    main()
