"""What links cost, from made-up times of the model itself: found again, also from noisy times."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rdmacoll._extension import extension
from rdmacoll.tune.choice import Measured
from rdmacoll.tune.links import (
    START,
    Cell,
    Fit,
    cells_of,
    close_choices,
    fit_links,
    link_rows,
)
from rdmacoll.tune.run import PlannedForecasts, links_of
from rdmacoll.tune.tables import Group, file_lines, link_lines

COLLECTIVES = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")
SIZES = [256 << n for n in range(0, 18, 2)]
# In the order of START: latency, overhead, gap, gap of a host; latency, overhead, gap.
SLOW = [60_000, 9_000, 2_900, 1_200, 900, 500, 90]
FAST = [2_000, 700, 90, 80, 250, 60, 200]
MORE = 1.02  # what is found again is as good as true


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RDMACOLL_ALGO", "RDMACOLL_TUNING", "RDMACOLL_BLOCK_BYTES"):
        monkeypatch.delenv(name, raising=False)


def made_up(costs: Sequence[int], noise: float = 0.0) -> tuple[list[Cell], PlannedForecasts]:
    """Cells of 2x4 with times as if links cost this, and the forecasts of these cells."""
    group = extension().PlannedGroup("2x4", 1)
    cells = [
        Cell(collective, algorithm, size, 1.0)
        for collective in COLLECTIVES
        for algorithm in group.algorithms(collective)
        for size in SIZES
    ]
    forecasts = PlannedForecasts("2x4", cells)
    draw = random.Random(0).uniform
    times_us = [time_ns / 1e3 * (1 + draw(-noise, noise)) for time_ns in forecasts.times_ns(costs)]
    timed = [
        Cell(cell.collective, cell.algorithm, cell.bytes, time_us)
        for cell, time_us in zip(cells, times_us, strict=True)
    ]
    return timed, forecasts


def fitted(cells: Sequence[Cell], forecasts: PlannedForecasts) -> Fit:
    fit = fit_links(cells, forecasts)
    assert fit is not None
    return fit


def test_the_start_is_the_default() -> None:
    group = extension().PlannedGroup("2x4", 1)
    assert not group.measured_links
    group.use_tuning("\n".join(link_rows(list(START.values()))))
    assert not group.measured_links
    for place in range(len(START)):
        costs = [cost + (place == index) for index, cost in enumerate(START.values())]
        group.use_tuning("\n".join(link_rows(costs)))
        assert group.measured_links


@pytest.mark.parametrize("costs", [SLOW, FAST, list(START.values())], ids=["slow", "fast", "same"])
def test_costs_are_found_again(costs: list[int]) -> None:
    fit = fitted(*made_up(costs))
    assert fit.costs == pytest.approx(costs, rel=0.05)
    assert fit.median_ratio == pytest.approx(1, abs=0.01)
    assert (fit.close_choices, fit.choices) == (45, 45)


@pytest.mark.parametrize("costs", [SLOW, FAST], ids=["slow", "fast"])
def test_noisy_times(costs: list[int]) -> None:
    fit = fitted(*made_up(costs, noise=0.1))
    assert fit.median_ratio == pytest.approx(1, abs=0.03)
    assert fit.middle_half == pytest.approx((0.95, 1.05), abs=0.03)
    assert fit.close_choices >= 0.9 * fit.choices


def test_costs_of_nothing_stay_in_what_a_table_may_say() -> None:
    fit = fitted(*made_up([60_000, 9_000, 2_900, 0, 0, 0, 90]))
    assert fit.costs[:3] == pytest.approx([60_000, 9_000, 2_900], rel=0.05)
    assert all(0 <= cost < start for cost, start in zip(fit.costs[4:6], (400, 150), strict=True))
    cells, forecasts = made_up(SLOW)
    ages = [Cell(cell.collective, cell.algorithm, cell.bytes, 1e12) for cell in cells]
    extension().PlannedGroup("2x4", 1).use_tuning("\n".join(fitted(ages, forecasts).rows()))


def test_too_few_cells_and_no_hosts_of_several() -> None:
    cells, forecasts = made_up(SLOW)
    assert fit_links(cells[:6], forecasts) is None
    algorithms = extension().PlannedGroup("2x4", 1).algorithms("all_reduce")
    times_us = {algorithm: [1.0] * 9 for algorithm in algorithms}
    measured = [Measured("all_reduce", SIZES, times_us, ["ring"] * 9)]
    assert links_of("mapped", measured) is links_of("unmapped", measured) is None
    assert links_of("hosts=2x4", measured) is not None


def test_close_choices() -> None:
    cells = [
        *(Cell("reduce", "ring", 8, 100.0), Cell("reduce", "tree", 8, 109.0)),
        *(Cell("reduce", "ring", 16, 100.0), Cell("reduce", "tree", 16, 111.0)),
        *(Cell("broadcast", "ring", 8, 111.0), Cell("broadcast", "tree", 8, 100.0)),
    ]
    assert close_choices(cells, lambda *_: "tree") == [True, False, True]
    assert close_choices(cells, lambda *_: "ring") == [True, True, False]


def test_what_jobs_take_is_judged() -> None:
    """Rails, where others are forecast to be hardly quicker."""
    case = ("all_gather", 128 << 10)
    group = extension().PlannedGroup("8x8", 1)
    cells = [Cell(case[0], algorithm, case[1], 1.0) for algorithm in group.algorithms(case[0])]
    forecasts = PlannedForecasts("8x8", cells)
    costs = list(START.values())
    quickest, _ = min(zip(cells, forecasts.times_ns(costs), strict=True), key=lambda both: both[1])
    assert quickest.algorithm == "leaders"
    assert forecasts.taken(costs, *case) == "rails"


def test_cells() -> None:
    measured = Measured("reduce", [8, 16], {"ring": [1.0, 2.0], "tree": [3.0, 4.0]}, ["ring"] * 2)
    assert list(cells_of([measured]))[1:3] == [
        Cell("reduce", "ring", 16, 2.0),
        Cell("reduce", "tree", 8, 3.0),
    ]


def test_the_file_and_the_screen() -> None:
    fit = Fit([1, 2, 3, 4, 5, 6, 7], 1.014, (0.9, 1.2), 18, 20)
    rows = [
        "link network latency_ns=1 overhead_ns=2 gap_ps=3 host_gap_ps=4",
        "link memory latency_ns=5 overhead_ns=6 gap_ps=7",
    ]
    said = [
        "forecast / measured: median 1.01, half 0.90 to 1.20",
        "the forecast's choice is within 10% of the best measured in 18 of 20 cells",
    ]
    measured = Measured("reduce", [8], {"ring": [1.0]}, ["ring"])
    lines = list(file_lines(Group(8, "hosts=2x4", "rdmacoll 1"), [measured], fit))
    first = lines.index(rows[0])
    assert lines[first - 2 : first + 2] == [*(f"# {line}" for line in said), *rows]
    assert lines[-1] == "reduce hosts=2x4 world=8 up_to=any ring"
    assert [line.strip() for line in link_lines(fit)][2:] == [*rows, *said]
