"""The result of run.py: as data, as a table and as a picture."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from rdmacoll.bench.frame.figure import readers_name, save
from rdmacoll.bench.result import Machine

BASELINE, ALONE, IN_HEAP = "gloo", "alone", ", heap"  # names of systems, the last at their end
INCHES_OF_A_ROW, INCHES_WIDE = 0.65, 9.0


@dataclass(frozen=True)
class Speed:
    """One system's, in medians over the rounds. `communication` is the share of its time by which
    it takes longer than the same training without any, in the same kind of memory."""

    samples_per_s: float
    times_baseline: float
    communication: float


@dataclass(frozen=True)
class Row:
    workload: str
    parallelism: str
    systems: dict[str, Speed]


@dataclass(frozen=True)
class Result:
    ranks: int
    torch: str
    machine: Machine
    rows: list[Row]


def row_of(workload: str, parallelism: str, samples: int, turns_s: dict[str, list[float]]) -> Row:
    """From the seconds of each system's turns, of so many samples each, round by round."""

    def ratios(above: str, below: str) -> float:
        pairs = zip(turns_s[above], turns_s[below], strict=True)
        return statistics.median(one / other for one, other in pairs)

    systems = {}
    for name, turns in turns_s.items():
        alone = ALONE + IN_HEAP if name.endswith(IN_HEAP) else ALONE
        systems[name] = Speed(
            samples / statistics.median(turns), ratios(BASELINE, name), 1 - ratios(alone, name)
        )
    return Row(workload, parallelism, systems)


def heading(result: Result) -> str:
    machine = result.machine
    flag = "" if machine.flag_us is None else f" · flag {machine.flag_us:.2f} us"
    copies = f"memcpy {machine.copy_gb_per_s:.1f} GB/s by each rank at once{flag}"
    return f"{result.ranks} ranks on {machine.cores} cores · torch {result.torch} · {copies}"


def table(result: Result) -> Table:
    shown = Table()
    shown.add_column("model")
    shown.add_column("system")
    for title in ("samples/s", f"times {BASELINE}", "communication"):
        shown.add_column(title, justify="right")
    for row in result.rows:
        label = f"{row.workload}, {row.parallelism}"
        for name, speed in row.systems.items():
            share = "" if name.startswith(ALONE) else f"{speed.communication:.0%}"
            shown.add_row(
                label, name, f"{speed.samples_per_s:.0f}", f"{speed.times_baseline:.2f}", share
            )
            label = ""
        shown.add_section()
    return shown


def draw(result: Result, path: Path) -> None:
    """Bars of the samples per second in gloo's, and of the share of communication."""
    from matplotlib.figure import Figure

    height = 1.2 + INCHES_OF_A_ROW * len(result.rows)
    figure = Figure(figsize=(INCHES_WIDE, height))
    figure.set_layout_engine("constrained", w_pad=0.1)
    left, right = figure.subplots(1, 2, sharey=True)
    names = [name for name in result.rows[0].systems if not name.startswith(ALONE)]
    bar = 0.8 / len(names)
    for number, name in enumerate(names):
        places = [at + (number - (len(names) - 1) / 2) * bar for at in range(len(result.rows))]
        speeds = [row.systems[name] for row in result.rows]
        drawn = left.barh(
            places, [speed.times_baseline for speed in speeds], bar, label=readers_name(name)
        )
        left.bar_label(drawn, [f"{speed.times_baseline:.2f}" for speed in speeds], fontsize="small")
        right.barh(places, [100 * speed.communication for speed in speeds], bar)
    labels = [f"{row.workload},\n{row.parallelism}" for row in result.rows]
    left.set_yticks(range(len(result.rows)), labels)
    left.invert_yaxis()
    left.set_title("Speed: more is better", fontsize="medium")
    left.set_xlabel(f"samples per second, in multiples of {BASELINE}'s")
    left.margins(x=0.12, y=0.01)
    right.set_title("Communication: less is better", fontsize="medium")
    right.set_xlabel("share of a step's time, %")
    for panel in (left, right):
        panel.grid(axis="x", alpha=0.3)
    left.legend(fontsize="small")
    figure.suptitle(f"Training on {result.ranks} ranks, {result.machine.cores} cores")
    save(figure, path)
