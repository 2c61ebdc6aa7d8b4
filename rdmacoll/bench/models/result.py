"""The result of a run as plain data: what --json writes, and table.py and plot.py show."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from ..frame.interval import Ratio, ratio_of
from .measure import Turns


@dataclass(frozen=True)
class Measured:
    """One way on one model. Of a step, the median of the turns' means."""

    steps_per_s: float
    step_ms: float
    computation_ms: float  # forward and backward, the slowest worker's
    update_ms: float  # at the holder
    communication_ms: float  # the rest of the step, with waiting for other workers
    slower: Ratio
    cpu_ms: float  # of all processes
    cpu: Ratio
    form: str
    steps: int  # in all turns
    turns_ms: list[float]


@dataclass(frozen=True)
class Row:
    model: str
    tensors: int
    bytes: int  # of all parameters
    mean_tensor_bytes: float
    bytes_per_step: int  # of parameters to all workers, and of gradients from them
    ways: dict[str, Measured]

    @property
    def gb_per_s_of_computation(self) -> float:
        """What the model moves for what it computes, as measured in the first way."""
        first = next(iter(self.ways.values()))
        return self.bytes_per_step / first.computation_ms / 1e6


@dataclass(frozen=True)
class Result:
    cores: int
    load: tuple[float, float, float]  # of the last 1, 5 and 15 minutes, as the run began
    workers: int
    rounds: int
    versions: dict[str, str]
    rows: list[Row]

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def row_of(model: str, sizes: list[int], ways: list[str], turns: list[Turns]) -> Row:
    """From what all processes have measured, of each way first the holder. `sizes`: elements of the
    parameters. The first way is the one that the others are compared with."""
    members = len(turns) // len(ways)
    teams = [turns[first : first + members] for first in range(0, len(turns), members)]
    first_ms, first_cpu_ms = _step_ms(teams[0]), _cpu_ms(teams[0])
    total = 4 * sum(sizes)
    return Row(
        model=model,
        tensors=len(sizes),
        bytes=total,
        mean_tensor_bytes=total / len(sizes),
        bytes_per_step=2 * total * (members - 1),
        ways={
            name: _measured(team, first_ms, first_cpu_ms)
            for name, team in zip(ways, teams, strict=True)
        },
    )


def _measured(team: list[Turns], first_ms: list[float], first_cpu_ms: list[float]) -> Measured:
    holder, *workers = team
    step_ms, cpu_ms = _step_ms(team), _cpu_ms(team)
    computation_ms = _slowest([worker.part_ms for worker in workers])
    parts = zip(step_ms, computation_ms, holder.part_ms, strict=True)
    communication_ms = [step - computed - updated for step, computed, updated in parts]
    return Measured(
        steps_per_s=1e3 / statistics.median(step_ms),
        step_ms=statistics.median(step_ms),
        computation_ms=statistics.median(computation_ms),
        update_ms=statistics.median(holder.part_ms),
        communication_ms=statistics.median(communication_ms),
        slower=ratio_of(step_ms, first_ms),
        cpu_ms=statistics.median(cpu_ms),
        cpu=ratio_of(cpu_ms, first_cpu_ms),
        form=workers[0].form,
        steps=holder.steps * len(step_ms),
        turns_ms=step_ms,
    )


def _step_ms(team: list[Turns]) -> list[float]:
    return _slowest([worker.step_ms for worker in team[1:]])


def _slowest(workers: list[list[float]]) -> list[float]:
    return [max(turn) for turn in zip(*workers, strict=True)]


def _cpu_ms(team: list[Turns]) -> list[float]:
    return [sum(turn) for turn in zip(*(member.cpu_ms for member in team), strict=True)]
