"""What each process of a run does. Rank 2n is the sender of way n, rank 2n + 1 its receiver."""

import gc
import json
import os
import sys
from datetime import timedelta
from importlib.metadata import version

import torch
import torch.distributed as dist

from rdmacoll.base import files

from ..case import ROOT, WrongResult
from ..machine import flag_us
from ..measure import STEP_TIMEOUT_S, watch
from .measure import Meter, Turns
from .options import PROG, Options
from .pair import Pair
from .result import Result, row_of
from .table import heading, row_lines
from .ways import make_way

TIMEOUT = timedelta(seconds=STEP_TIMEOUT_S)


def run(options: Options) -> None:
    """The processes meet through torch's variables (RANK, MASTER_PORT, ...)."""
    watch()
    torch.set_num_threads(1)
    gc.disable()
    dist.init_process_group("gloo", timeout=TIMEOUT)
    try:
        result = _measure(options)
    except WrongResult as error:
        # A thread of gloo that still holds a tensor when Python ends aborts the process.
        dist.destroy_process_group()
        sys.exit(f"{PROG}: {error}")
    at_root = dist.get_rank() == ROOT
    dist.destroy_process_group()
    if at_root and options.json:
        files.write(options.json, json.dumps(result.as_data(), indent=1) + "\n", files.SHARED)


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
        versions=_versions(options),
        rows=[],
    )
    _say(rank, *heading(result))
    meter = Meter(way, options.ways[number], number, len(options.ways), control)
    for size_bytes in options.sizes_bytes:
        mine = meter.measure(size_bytes, options.rounds)
        all_turns: list[Turns | None] | None = (
            [None] * dist.get_world_size() if rank == ROOT else None
        )
        dist.gather_object(mine, all_turns, dst=ROOT)
        if all_turns is not None:
            row = row_of(size_bytes, options.ways, [turns for turns in all_turns if turns])
            _say(rank, *row_lines(row))
            result.rows.append(row)
    way.close()
    return result


def _pair(rank: int) -> Pair:
    first = rank - rank % 2
    control = dist.new_group(
        [first, first + 1], backend="gloo", timeout=TIMEOUT, use_local_synchronization=True
    )
    return Pair(rank, rank == first, control)


def _versions(options: Options) -> dict[str, str]:
    found = {"rdmacoll": version("rdmacoll"), "torch": torch.__version__}
    if "grpc" in options.ways:
        found["grpcio"] = version("grpcio")
    return found


def _say(rank: int, *lines: str) -> None:
    if rank == ROOT:
        print(*lines, sep="\n", flush=True)
