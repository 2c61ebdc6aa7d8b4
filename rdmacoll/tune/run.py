"""What every rank of `rdmacoll tune` does: a group per algorithm, measured in turns. All ranks know
the same times, the slowest's; rank 0 has the word and writes.
"""

import gc
import os
from collections.abc import Callable
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import torch
import torch.distributed as dist

import rdmacoll
from rdmacoll._extension import extension
from rdmacoll.base import files
from rdmacoll.bench.case import Case, Place
from rdmacoll.bench.frame import busy
from rdmacoll.bench.frame.job import ROOT, STEP_TIMEOUT_S, watch
from rdmacoll.bench.frame.progress import Progress
from rdmacoll.bench.measure import Meter, System
from rdmacoll.bench.result import Row
from rdmacoll.bench.torch_calls import Call, torch_call
from rdmacoll.bench.values import Values

from .choice import Measured
from .links import Cell, Costs, Fit, cells_of, fit_links, link_rows
from .options import DTYPE, Options
from .tables import Group, file_lines, link_lines, screen_lines

TIMEOUT = timedelta(seconds=STEP_TIMEOUT_S)
REDUCTION = "sum"
OF_A_ROOT = ("broadcast", "reduce", "gather", "scatter")
BARRIERS = "barriers"
LEAST_SHARE = 0.1  # of a call in its time with a barrier: less is noise
SOME_ROOT = 1  # that forecasts take for all of them, as csrc/plan/choice/choices.cc does
# What would put other algorithms in the place of the defaults that are compared with.
NOT_HERE = ("RDMACOLL_ALGO", "RDMACOLL_TUNING")


def run(options: Options) -> None:
    """The ranks meet through torch's variables (RANK, MASTER_PORT, ...)."""
    watch()
    for name in NOT_HERE:
        os.environ.pop(name, None)
    torch.set_num_threads(1)
    gc.disable()  # its pauses would be some algorithm's time
    load = busy.load()
    dist.init_process_group("gloo", timeout=TIMEOUT)
    tuner = Tuner(options)
    tuner.say(str(tuner.group), *busy.before(load, len(os.sched_getaffinity(0))))
    measured: list[Measured] = []
    steps = sum(map(tuner.steps, options.collectives))
    progress = Progress("rdmacoll tune", steps, "algorithms and sizes", tuner.place.rank == ROOT)
    for collective in options.collectives:
        algorithms = tuner.algorithms(collective)
        if len(algorithms) == 1:
            tuner.say("", f"{collective}: {algorithms[0]} is all there is here")
            continue
        measured.append(tuner.measure(collective, progress))
        tuner.say(*screen_lines(measured[-1]))
    if tuner.place.rank == ROOT:
        links = links_of(tuner.group.layout, measured)
        tuner.say(*(link_lines(links) if links else ()))
        lines = file_lines(tuner.group, measured, links)
        files.write(options.out, "\n".join(lines) + "\n", files.SHARED)
    tuner.say("", f"written; use it with RDMACOLL_TUNING={options.out.absolute()}")
    dist.destroy_process_group()


def links_of(layout: str, measured: list[Measured]) -> Fit | None:
    """None where there are no forecasts, on one host and on hosts of one rank each, or no times."""
    kind, _, hosts = layout.partition("=")
    if kind != "hosts" or not measured:
        return None
    cells = list(cells_of(measured))
    return fit_links(cells, PlannedForecasts(hosts, cells))


class PlannedForecasts:
    """Of a group on these hosts, asked of the compiled module. RDMACOLL_DETERMINISTIC and
    RDMACOLL_BLOCK_BYTES are heeded as in the group that was measured."""

    def __init__(self, hosts: str, cells: list[Cell]) -> None:
        self._group = extension().PlannedGroup(hosts, SOME_ROOT)
        self._cells = cells

    def times_ns(self, costs: Costs) -> list[int]:
        self._use(costs)
        return [
            self._group.forecast(cell.collective, cell.algorithm, cell.bytes)["time_ns"]
            for cell in self._cells
        ]

    def taken(self, costs: Costs, collective: str, size: int) -> str:
        self._use(costs)
        algorithm: str = self._group.chosen(collective, size)
        return algorithm

    def _use(self, costs: Costs) -> None:
        self._group.use_tuning("\n".join(link_rows(costs)))


class Tuner:
    def __init__(self, options: Options) -> None:
        self._options = options
        self.place = Place(dist.get_rank(), dist.get_world_size())
        self._control = dist.distributed_c10d._get_default_group()
        self._values = Values(self.place.ranks, getattr(torch, DTYPE), REDUCTION)
        self._groups: dict[str, Any] = {}  # by algorithm
        self._untuned = _backend(self._group("auto"))
        versions = f"rdmacoll {version('rdmacoll')}, torch {torch.__version__}"
        self.group = Group(self.place.ranks, self._untuned._layout(), versions)

    def say(self, *lines: str) -> None:
        if self.place.rank == ROOT:
            print(*lines, sep="\n", flush=True)

    def algorithms(self, collective: str) -> list[str]:
        names: list[str] = self._untuned._algorithms(collective)
        return names

    def steps(self, collective: str) -> int:
        """How many algorithms there are to be measured, once for each size."""
        count = len(self.algorithms(collective))
        sizes = self._options.elements(collective, self.place.ranks)
        return count * len(sizes) if count > 1 else 0

    def measure(self, collective: str, progress: Progress) -> Measured:
        algorithms = self.algorithms(collective)
        systems = [self._system(algorithm) for algorithm in algorithms]
        if collective in OF_A_ROOT:
            systems.append(System(BARRIERS, lambda case: self._call_barriers(case.place.ranks)))
        meter = Meter(systems, self._control, self._options.rounds, check=False)
        rows = []
        for elements in self._options.elements(collective, self.place.ranks):
            rows.append(meter.measure(Case(collective, elements, self._values, self.place, False)))
            progress.step(len(algorithms))
        sizes = [row.bytes for row in rows]
        return Measured(
            collective,
            sizes,
            {name: [self._one_call_us(row, name) for row in rows] for name in algorithms},
            [self._untuned._algorithm(collective, size) for size in sizes],
        )

    def _one_call_us(self, row: Row, algorithm: str) -> float:
        us = row.systems[algorithm].p50_us
        if row.operation not in OF_A_ROOT:
            return us
        return max(us - row.systems[BARRIERS].p50_us, us * LEAST_SHARE) / self.place.ranks

    def _system(self, algorithm: str) -> System:
        group, meet = self._group(algorithm), self._call_barriers(1)
        return System(algorithm, lambda case: _call(case, group, meet))

    def _call_barriers(self, count: int) -> Call:
        group = self._group("auto")
        return lambda: [dist.barrier(group=group) for _ in range(count)]

    def _group(self, algorithm: str) -> Any:
        if algorithm not in self._groups:
            options = rdmacoll.Options(algorithm=algorithm)
            made = dist.new_group(backend="rdma", timeout=TIMEOUT, pg_options=options)
            self._groups[algorithm] = made
        return self._groups[algorithm]


def _call(case: Case, group: Any, meet: Call) -> Call:
    """Where there is a root, each rank is it once, and all meet after it: calls behind each other
    would overlap, and what an algorithm makes the ranks wait for would not show."""
    if case.operation not in OF_A_ROOT:
        return torch_call(case, group, REDUCTION)
    of_root = _with_root(case, group)

    def call() -> None:
        for root in range(case.place.ranks):
            of_root(root)
            meet()

    return call


def _with_root(case: Case, group: Any) -> Callable[[int], object]:
    one, out, rank = case.input, case.output, case.place.rank

    def parts(whole: torch.Tensor) -> list[list[torch.Tensor] | None]:
        return [
            list(whole.split(case.part)) if r == rank else None for r in range(case.place.ranks)
        ]

    match case.operation:
        case "broadcast":
            return lambda root: dist.broadcast(one, root, group=group)
        case "reduce":
            return lambda root: dist.reduce(one, root, group=group)
        case "gather":
            to = parts(out)
            return lambda root: dist.gather(one, to[root], root, group=group)
    of = parts(one)
    return lambda root: dist.scatter(out, of[root], root, group=group)


def _backend(group: Any) -> Any:
    return group._get_backend(torch.device("cpu"))
