"""What every rank of a run does, however it was started. Rank 0 has the word."""

import gc
import json
import sys
from datetime import timedelta
from importlib.metadata import version

import torch
import torch.distributed as dist

from rdmacoll.base import files

from .case import ROOT, Case, Place, WrongResult
from .machine import measure_machine
from .measure import STEP_TIMEOUT_S, Meter, System, watch
from .options import Options
from .result import Result
from .table import heading, operation_heading, row_lines
from .torch_calls import torch_call
from .values import Values

TIMEOUT = timedelta(seconds=STEP_TIMEOUT_S)


def run(options: Options) -> None:
    """The ranks meet through torch's variables (RANK, MASTER_PORT, ...)."""
    watch()
    torch.set_num_threads(1)
    gc.disable()  # its pauses would be some system's p99
    dist.init_process_group("gloo", timeout=TIMEOUT)
    try:
        result = _measure(options)
    except WrongResult as error:
        # A thread of gloo that still holds a tensor when Python ends aborts the process.
        dist.destroy_process_group()
        sys.exit(f"rdmacoll bench: {error}")
    at_root = dist.get_rank() == ROOT
    dist.destroy_process_group()
    watch()
    if at_root and options.json:
        files.write(options.json, json.dumps(result.as_data(), indent=1) + "\n", files.SHARED)
    if at_root and options.plot:
        from .plot import draw

        draw(result, options.plot)


def _measure(options: Options) -> Result:
    control = dist.distributed_c10d._get_default_group()
    place = Place(dist.get_rank(), dist.get_world_size())
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
    _say(place, *heading(result))
    values = Values(place.ranks, getattr(torch, options.dtype), options.reduction)
    systems = [_system(name, options.reduction) for name in options.systems]
    meter = Meter(systems, control, options.rounds, options.check)
    for operation in options.operations:
        _say(place, *operation_heading(operation, options.systems))
        for elements in options.elements(operation, place.ranks):
            case = Case(operation, elements, values, place, options.in_place, options.memory)
            row = meter.measure(case)
            _say(place, *row_lines(row))
            result.rows.append(row)
    return result


def _system(name: str, reduction: str) -> System:
    if name == "mpi":
        from .mpi_calls import mpi_call

        return System(name, lambda case: mpi_call(case, reduction))
    group = dist.new_group(backend=name, timeout=TIMEOUT)
    return System(name, lambda case: torch_call(case, group, reduction))


def _versions(options: Options) -> dict[str, str]:
    found = {"rdmacoll": version("rdmacoll"), "torch": torch.__version__}
    if "mpi" in options.systems:
        from .mpi_calls import mpi_version

        found["mpi"] = mpi_version()
    return found


def _say(place: Place, *lines: str) -> None:
    if place.rank == ROOT:
        print(*lines, sep="\n", flush=True)
