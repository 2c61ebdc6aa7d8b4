"""The result drawn: for each operation its time and its bandwidth over size, a line per system."""

from pathlib import Path
from typing import Any

from rdmacoll.base.byte_sizes import text_of_size

from .frame.figure import save
from .result import Result, Row

LIMIT = {"color": "0.5", "linestyle": "--", "label": "memcpy"}
INCHES = (11.0, 3.6)  # of one operation


def draw(result: Result, path: Path) -> None:
    from matplotlib.figure import Figure

    sized = [row for row in result.rows if row.bytes]  # a barrier has no size to be drawn over
    operations = list(dict.fromkeys(row.operation for row in sized))
    figure = Figure(figsize=(INCHES[0], INCHES[1] * len(operations)), layout="constrained")
    axes = figure.subplots(len(operations), 2, squeeze=False)
    for (left, right), operation in zip(axes, operations, strict=True):
        rows = [row for row in sized if row.operation == operation]
        _draw_times(left, rows, result.machine.copy_gb_per_s)
        _draw_rates(right, rows, result.machine.copy_gb_per_s)
        left.set_ylabel(f"{operation}: us")
        right.set_ylabel("busbw, GB/s")
        for panel in (left, right):
            _finish(panel, [row.bytes for row in rows])
    where = f"{result.ranks} ranks on {result.machine.cores} cores"
    figure.suptitle(f"{where}: {result.what}; median of the slowest rank")
    save(figure, path)


def _draw_times(panel: Any, rows: list[Row], copy_gb_per_s: float) -> None:
    sizes = [row.bytes for row in rows]
    for system in rows[0].systems:
        times = [row.systems[system].p50_us for row in rows]
        panel.plot(sizes, times, marker=".", label=system)
    panel.plot(sizes, [size / copy_gb_per_s / 1e3 for size in sizes], **LIMIT)
    panel.set_yscale("log")
    panel.set_ylim(bottom=min(row.systems[s].p50_us for row in rows for s in row.systems) / 2)


def _draw_rates(panel: Any, rows: list[Row], copy_gb_per_s: float) -> None:
    sizes = [row.bytes for row in rows]
    for system in rows[0].systems:
        rates = [row.systems[system].busbw_gb_per_s for row in rows]
        panel.plot(sizes, rates, marker=".", label=system)
    panel.axhline(copy_gb_per_s, **LIMIT)
    panel.set_ylim(bottom=0)


def _finish(panel: Any, sizes: list[int]) -> None:
    panel.set_xscale("log", base=2)
    panel.set_xticks(sizes, [text_of_size(size) for size in sizes], rotation=45, ha="right")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
