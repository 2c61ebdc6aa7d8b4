"""What each process of a run does. Rank 2n is the sender of way n, rank 2n + 1 its receiver."""

import os

import torch.distributed as dist

from ..frame.job import ROOT, TIMEOUT, run_job, say, versions
from ..machine import flag_us
from .measure import Meter, Turns
from .options import PROG, Options
from .pair import Pair
from .result import Result, row_of
from .table import heading, row_lines
from .ways import make_way


def run(options: Options) -> None:
    run_job(PROG, lambda: _measure(options), options.json)


def _measure(options: Options) -> Result:
    rank = dist.get_rank()
    control = dist.distributed_c10d._get_default_group()
    number = rank // 2
    pair = _pair(rank)
    way = make_way(options.ways[number], pair)
    result = Result(
        cores=len(os.sched_getaffinity(0)),
        load=os.getloadavg(),
        flag_us=flag_us() if rank == ROOT else None,
        rounds=options.rounds,
        versions=versions(options.ways),
        rows=[],
    )
    say(*heading(result))
    meter = Meter(way, options.ways[number], number, len(options.ways), control)
    for size_bytes in options.sizes_bytes:
        mine = meter.measure(size_bytes, options.rounds)
        all_turns: list[Turns | None] | None = (
            [None] * dist.get_world_size() if rank == ROOT else None
        )
        dist.gather_object(mine, all_turns, dst=ROOT)
        if all_turns is not None:
            row = row_of(size_bytes, options.ways, [turns for turns in all_turns if turns])
            say(*row_lines(row))
            result.rows.append(row)
    way.close()
    return result


def _pair(rank: int) -> Pair:
    first = rank - rank % 2
    control = dist.new_group(
        [first, first + 1], backend="gloo", timeout=TIMEOUT, use_local_synchronization=True
    )
    return Pair(rank, rank == first, control)
