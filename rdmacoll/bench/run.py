"""What every rank of a run does, however it was started. Rank 0 has the word."""

import torch
import torch.distributed as dist

from .case import Case, Place
from .frame import busy
from .frame.job import ROOT, TIMEOUT, run_job, say, versions
from .frame.progress import Progress
from .machine import measure_machine
from .measure import Meter, System
from .options import Options
from .plot import draw
from .result import Result
from .table import heading, operation_heading, row_lines
from .torch_calls import torch_call
from .values import Values


def run(options: Options) -> None:
    run_job("rdmacoll bench", lambda: _measure(options), options.json, options.plot, draw)


def _measure(options: Options) -> Result:
    control = dist.distributed_c10d._get_default_group()
    place = Place(dist.get_rank(), dist.get_world_size())
    load = busy.load()
    result = Result(
        ranks=place.ranks,
        dtype=options.dtype,
        reduction=options.reduction,
        in_place=options.in_place,
        memory=options.memory,
        checked=options.check,
        versions=_versions(options),
        machine=measure_machine(control),
        rows=[],
    )
    say(*heading(result), *busy.before(load, result.machine.cores))
    values = Values(place.ranks, getattr(torch, options.dtype), options.reduction)
    systems = [_system(name, options.reduction) for name in options.systems]
    meter = Meter(systems, control, options.rounds, options.check)
    sizes = {one: options.elements(one, place.ranks) for one in options.operations}
    steps = sum(map(len, sizes.values()))
    progress = Progress("rdmacoll bench", steps, "sizes", place.rank == ROOT)
    for operation in options.operations:
        say(*operation_heading(operation, options.systems))
        for elements in sizes[operation]:
            case = Case(operation, elements, values, place, options.in_place, options.memory)
            row = meter.measure(case)
            say(*row_lines(row))
            result.rows.append(row)
            progress.step()
    times = [one for row in result.rows for one in row.systems.values()]
    say(*busy.after([(t.p50_us, t.p99_us) for t in times], place.ranks, result.machine.cores))
    return result


def _system(name: str, reduction: str) -> System:
    if name == "mpi":
        from .mpi_calls import mpi_call

        return System(name, lambda case: mpi_call(case, reduction))
    group = dist.new_group(backend=name, timeout=TIMEOUT)
    return System(name, lambda case: torch_call(case, group, reduction))


def _versions(options: Options) -> dict[str, str]:
    found = versions(options.systems)
    if "mpi" in options.systems:
        from .mpi_calls import mpi_version

        found["mpi"] = mpi_version()
    return found
