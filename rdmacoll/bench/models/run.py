"""What each process of a run does. The ranks of a way follow each other, its holder's first."""

import os

import torch.distributed as dist

from ..frame.job import TIMEOUT, run_job, say, versions
from ..frame.rounds import Rounds
from .measure import Meter, Turns
from .options import PROG, Options
from .plot import draw
from .result import Result, row_of
from .table import heading, row_lines
from .team import Team
from .training import module_of
from .ways import make_way


def run(options: Options) -> None:
    run_job(PROG, lambda: _measure(options), options.json, options.plot, draw)


def _measure(options: Options) -> Result:
    control = dist.distributed_c10d._get_default_group()
    number, place = divmod(dist.get_rank(), options.processes_of_a_way)
    teams = _teams(options)
    groups = [_group(ranks) for ranks in teams]
    way = make_way(options.ways[number], Team(teams[number], place, groups[number]))
    holders = _group([ranks[0] for ranks in teams])
    result = Result(
        cores=len(os.sched_getaffinity(0)),
        load=os.getloadavg(),
        workers=options.workers,
        rounds=options.rounds,
        versions=versions(options.ways),
        rows=[],
    )
    say(*heading(result))
    rounds = Rounds(number, len(options.ways), control)
    meter = Meter(way, options.ways[number], rounds, control, holders)
    for model in options.models:
        all_turns: list[Turns | None] = [None] * dist.get_world_size()
        dist.all_gather_object(all_turns, meter.measure(model, options.rounds))
        sizes = [parameter.numel() for parameter in module_of(model).parameters()]
        row = row_of(model, sizes, options.ways, [turns for turns in all_turns if turns])
        say(*row_lines(row))
        result.rows.append(row)
    way.close()
    return result


def _teams(options: Options) -> list[list[int]]:
    """The ranks of each way."""
    count = options.processes_of_a_way
    firsts = range(0, count * len(options.ways), count)
    return [list(range(first, first + count)) for first in firsts]


def _group(ranks: list[int]) -> dist.ProcessGroup:
    """All processes make it. A way's own group must not come behind one of its holder alone: torch
    names it by how many groups this process is in."""
    return dist.new_group(ranks, backend="gloo", timeout=TIMEOUT)
