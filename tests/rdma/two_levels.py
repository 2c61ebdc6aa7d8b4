"""What two hosts of two ranks each send each other over verbs in plans of two levels, beside what
they must. Run by rdmarun -np 4 -H host1:2,host2:2.

The wire counts headers, too, and acknowledgements: 1.017 of the plan's bytes were seen at most. A
plan that knows no hosts sends at least half as much again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from paths import check_paths, places_by_rank

import rdmacoll

SIZE_BYTES = 4 << 20
ROUNDS = 4
MOST = 1.05  # of the bytes of the plan
SENT = Path("/sys/class/net/eth0/statistics/tx_bytes")
RANKS_PER_HOST = 2
ROOT = 0


@dataclass(frozen=True)
class Case:
    name: str
    sent: tuple[float, float]  # by each host, as a multiple of SIZE_BYTES
    call: Callable[[dist.ProcessGroup, torch.Tensor, torch.Tensor], None]  # with all, and a quarter


CASES = (
    Case("all_reduce", (1, 1), lambda group, all_, _: dist.all_reduce(all_, group=group)),
    Case("reduce", (0, 1), lambda group, all_, _: dist.reduce(all_, ROOT, group=group)),
    Case("broadcast", (1, 0), lambda group, all_, _: dist.broadcast(all_, ROOT, group=group)),
    Case(
        "all_gather",
        (0.5, 0.5),
        lambda group, all_, part: dist.all_gather_into_tensor(all_, part, group=group),
    ),
    Case(
        "reduce_scatter",
        (0.5, 0.5),
        lambda group, all_, part: dist.reduce_scatter_tensor(part, all_, group=group),
    ),
)


def sent_bytes(case: Case, group: dist.ProcessGroup) -> int:
    """By this host, in ROUNDS operations."""
    everything = torch.zeros(SIZE_BYTES // 4)
    part = torch.zeros(SIZE_BYTES // 4 // dist.get_world_size())
    case.call(group, everything, part)  # also connects
    dist.barrier()
    before = int(SENT.read_text())
    dist.barrier()
    for _ in range(ROUNDS):
        case.call(group, everything, part)
    dist.barrier()
    return int(SENT.read_text()) - before


def main() -> None:
    dist.init_process_group("rdma")
    check_paths(places_by_rank())
    options = rdmacoll.Options(algorithm="rails")
    group = dist.new_group(backend="rdma", pg_options=options)
    assert group is not None
    host = int(os.environ["RANK"]) // RANKS_PER_HOST
    for case in CASES:
        sent = sent_bytes(case, group)
        must = case.sent[host] * SIZE_BYTES * ROUNDS
        # Who only takes sends acknowledgements, and credits.
        most = MOST * must + (MOST - 1) * SIZE_BYTES * ROUNDS
        line = f"{case.name}: host {host} sent {sent} bytes for {must:.0f}"
        assert must <= sent <= most, line
        if int(os.environ["LOCAL_RANK"]) == 0:
            print(line, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
