"""The result drawn: for each model a bar per way, of what a step computes, updates and moves."""

from pathlib import Path
from typing import Any

from rdmacoll.base.byte_sizes import text_of_size

from ..frame.figure import readers_name, save
from .result import Result, Row

INCHES = (3.2, 3.8)  # of one model
PARTS = {  # from below, with their colours
    "computation": ("computation_ms", "tab:blue"),
    "update at the holder": ("update_ms", "tab:green"),
    "communication": ("communication_ms", "tab:orange"),
}


def draw(result: Result, path: Path) -> None:
    from matplotlib.figure import Figure

    count = len(result.rows)
    figure = Figure(figsize=(INCHES[0] * count, INCHES[1]), layout="constrained")
    panels = figure.subplots(1, count, squeeze=False)[0]
    for panel, row in zip(panels, result.rows, strict=True):
        _draw_bars(panel, row)
    panels[0].set_ylabel("time of a step, ms: less is better")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.suptitle("On each bar: steps per second")
    figure.legend(handles, labels, loc="outside lower center", ncols=len(PARTS))
    save(figure, path)


def _draw_bars(panel: Any, row: Row) -> None:
    names = [readers_name(way) for way in row.ways]
    ends = [0.0] * len(names)
    for label, (part, colour) in PARTS.items():
        heights = [getattr(one, part) for one in row.ways.values()]
        panel.bar(names, heights, bottom=ends, label=label, color=colour)
        ends = [end + height for end, height in zip(ends, heights, strict=True)]
    for number, (end, one) in enumerate(zip(ends, row.ways.values(), strict=True)):
        panel.text(number, end, f"{one.steps_per_s:.3g}/s", ha="center", va="bottom")
    panel.set_ylim(top=max(ends) * 1.1)
    step, tensor = text_of_size(row.bytes_per_step), text_of_size(round(row.mean_tensor_bytes))
    panel.set_title(f"{row.model}\n{step} a step, tensors of {tensor}", fontsize="medium")
