"""From measured times to the costs of links, such that the forecasts of all of them fit. Pure.

The forecasts come from outside: csrc/plan/cost/forecast.h has the model. The fit is
Levenberg's and Marquardt's, of the logarithms of costs and of forecast / measured: microseconds and
seconds count alike, and no cost falls below zero.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch

from .choice import Measured

# Where the fit starts: the defaults of csrc/plan/cost/links.h. And what a table may say at most,
# as csrc/plan/choice/link_rows.cc has it.
START = {
    ("network", "latency_ns"): 15_000,
    ("network", "overhead_ns"): 4_000,
    ("network", "gap_ps"): 700,
    ("network", "host_gap_ps"): 400,
    ("memory", "latency_ns"): 400,
    ("memory", "overhead_ns"): 150,
    ("memory", "gap_ps"): 150,
}
MOST = {"ns": 10**9, "ps": 10**6}

STEPS = 100  # measured times took 7 to 23
LONGEST_STEP = 2.0  # of a logarithm: the model has corners, and is not what it was behind them
LEAST_GAIN = 1e-5  # of the sum of squares, by one step
MOST_DAMPING = 1e6
CLOSE = 1.1  # a choice is good if it takes so many times the quickest one's time

Costs = Sequence[int]  # in the order of START


@dataclass(frozen=True)
class Cell:
    collective: str
    algorithm: str
    bytes: int
    time_us: float


class Forecasts(Protocol):
    def times_ns(self, costs: Costs) -> Sequence[int]:
        """Of each cell."""

    def taken(self, costs: Costs, collective: str, size: int) -> str:
        """The algorithm that a job takes by its forecasts."""


@dataclass(frozen=True)
class Fit:
    costs: Costs
    median_ratio: float  # forecast / measured
    middle_half: tuple[float, float]  # where half of the ratios are
    close_choices: int  # of what jobs take by the forecasts
    choices: int

    def rows(self) -> list[str]:
        return link_rows(self.costs)


def link_rows(costs: Costs) -> list[str]:
    """Of a tuned table."""
    named = dict(zip(START, costs, strict=True))
    rows = {link: [f"link {link}"] for link, _ in START}
    for (link, name), cost in named.items():
        rows[link].append(f"{name}={cost}")
    return [" ".join(words) for words in rows.values()]


def cells_of(measured: Sequence[Measured]) -> Iterator[Cell]:
    for one in measured:
        for algorithm, times_us in one.times_us.items():
            for size, time_us in zip(one.sizes_bytes, times_us, strict=True):
                yield Cell(one.collective, algorithm, size, time_us)


def fit_links(cells: Sequence[Cell], forecasts: Forecasts) -> Fit | None:
    """None, where there are fewer cells than costs."""
    if len(cells) < len(START):
        return None
    costs = _Descent(cells, forecasts).costs()
    times_ns = forecasts.times_ns(costs)
    ratios = [ns / 1e3 / cell.time_us for ns, cell in zip(times_ns, cells, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    close = close_choices(cells, partial(forecasts.taken, costs))
    return Fit(costs, statistics.median(ratios), (low, high), sum(close), len(close))


def close_choices(cells: Sequence[Cell], taken: Callable[[str, int], str]) -> list[bool]:
    """For each collective and size, whether what is taken is nearly the quickest."""
    times_us: dict[tuple[str, int], dict[str, float]] = {}
    for cell in cells:
        times_us.setdefault((cell.collective, cell.bytes), {})[cell.algorithm] = cell.time_us
    return [of[taken(*case)] <= CLOSE * min(of.values()) for case, of in times_us.items()]


class _Descent:
    def __init__(self, cells: Sequence[Cell], forecasts: Forecasts) -> None:
        self._forecasts = forecasts
        self._measured = torch.tensor([cell.time_us * 1e3 for cell in cells]).double().log()
        self._most = torch.tensor([MOST[name[-2:]] for _, name in START]).double().log()

    def costs(self) -> list[int]:
        place = torch.tensor(list(START.values())).double().log()
        place = self._allowed(place - self._errors(place).mean())
        errors, damping = self._errors(place), 1.0
        for _ in range(STEPS):
            slopes = self._slopes(place, errors)
            before = errors.square().sum()
            while damping < MOST_DAMPING:
                there = self._allowed(place + _step(slopes, errors, damping))
                errors_there = self._errors(there)
                if errors_there.square().sum() < before:
                    break
                damping *= 4
            else:
                break
            place, errors, damping = there, errors_there, damping / 3
            if errors.square().sum() > before * (1 - LEAST_GAIN):
                break
        return _whole(place)

    def _allowed(self, place: torch.Tensor) -> torch.Tensor:
        return place.clamp(min=0).minimum(self._most)

    def _errors(self, place: torch.Tensor) -> torch.Tensor:
        return self._errors_of(_whole(place))

    def _errors_of(self, costs: Costs) -> torch.Tensor:
        times_ns = torch.tensor(self._forecasts.times_ns(costs)).double()
        return times_ns.clamp(min=1).log() - self._measured

    def _slopes(self, place: torch.Tensor, errors: torch.Tensor) -> torch.Tensor:
        """By differences, which take a whole unit to be seen."""
        costs, columns = _whole(place), []
        for index, cost in enumerate(costs):
            other = cost - cost // 50 if cost >= 50 else cost + 1
            there = [*costs[:index], other, *costs[index + 1 :]]
            columns.append((self._errors_of(there) - errors) / math.log(other / cost))
        return torch.stack(columns, dim=1)


def _step(slopes: torch.Tensor, errors: torch.Tensor, damping: float) -> torch.Tensor:
    squares = slopes.T @ slopes
    # What a cost that no cell shows is divided by.
    damped = squares + torch.diag(damping * squares.diagonal() + 1e-9)
    return torch.linalg.solve(damped, -slopes.T @ errors).clamp(-LONGEST_STEP, LONGEST_STEP)


def _whole(place: torch.Tensor) -> list[int]:
    return [round(cost) for cost in place.exp().tolist()]
