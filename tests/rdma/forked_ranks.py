"""Ranks forked from one process that has imported torch, which takes a minute where the processor
is emulated. What makes them ranks (store, device, queue pairs) they make themselves.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed as dist

LIMIT_S = 120  # of all ranks, to their end

Body = Callable[[int, dist.Store], None]


def run(name: str, world: int, body: Body, statuses: list[int], limit_s: float = LIMIT_S) -> None:
    """SystemExit unless the ranks end with these (negative: the signal)."""
    print(f"--- {name}", flush=True)
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    pids = []
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            os._exit(_be_rank(rank, server.port, body))
        pids.append(pid)
    ended = _wait_for(pids, limit_s)
    if ended != statuses:
        raise SystemExit(f"{name}: the ranks ended with {ended}, not {statuses} (None: not at all)")


@contextmanager
def world_of(
    size: int, rank: int, store: dist.Store, timeout: timedelta | None = None
) -> Iterator[None]:
    """The default group, left when all went well."""
    os.environ["LOCAL_RANK"] = str(rank)  # spreads ranks over devices
    dist.init_process_group("rdma", store=store, rank=rank, world_size=size, timeout=timeout)
    yield
    dist.destroy_process_group()


def _be_rank(rank: int, port: int, body: Body) -> int:
    """The exit status."""
    try:
        body(rank, dist.TCPStore("127.0.0.1", port, is_master=False))
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _wait_for(pids: list[int], limit_s: float) -> list[int | None]:
    """The processes' statuses; what has not ended within the limit is killed."""
    end = time.monotonic() + limit_s
    statuses: dict[int, int] = {}
    while len(statuses) < len(pids) and time.monotonic() < end:
        for pid in set(pids) - set(statuses):
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                statuses[pid] = os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    for pid in set(pids) - set(statuses):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return [statuses.get(pid) for pid in pids]
