"""The result drawn: for each operation its time and its bandwidth over size, a line per system."""

from pathlib import Path
from typing import Any

from rdmacoll.base.byte_sizes import text_of_size

from .frame.figure import readers_name, save
from .result import Result, Row

LIMIT = {"color": "0.5", "linestyle": "--"}
INCHES = (11.0, 4.0)  # of one operation
# The same system has the same colour in every picture, whatever it stands beside.
COLORS = {"rdma": "tab:blue", "gloo": "tab:orange", "mpi": "tab:green", "fake": "tab:red"}


def draw(result: Result, path: Path) -> None:
    from matplotlib.figure import Figure

    sized = [row for row in result.rows if row.bytes]  # a barrier has no size to be drawn over
    operations = list(dict.fromkeys(row.operation for row in sized))
    figure = Figure(figsize=(INCHES[0], INCHES[1] * len(operations)), layout="constrained")
    axes = figure.subplots(len(operations), 2, squeeze=False)
    names = system_names(result.versions)
    for (left, right), operation in zip(axes, operations, strict=True):
        rows = [row for row in sized if row.operation == operation]
        _draw_times(left, rows, names, result.machine.copy_gb_per_s)
        _draw_rates(right, rows, names, result.machine.copy_gb_per_s)
        left.set_title(f"{operation}: time, less is better")
        left.set_ylabel("time of a call")
        right.set_title(f"{operation}: bandwidth, more is better")
        right.set_ylabel("bus bandwidth, GB/s")
        for panel in (left, right):
            _finish(panel, [row.bytes for row in rows])
        left.legend(fontsize="small")
    where = f"{result.ranks} ranks on {result.machine.cores} cores"
    figure.suptitle(f"{where}: {result.what}; the slowest rank's median")
    save(figure, path)


def system_names(versions: dict[str, str]) -> dict[str, str]:
    """What a legend calls each system: the names by which readers know them."""
    mpi = versions["mpi"].rpartition(" ")[0] if "mpi" in versions else "MPI"
    ours = {"mpi": f"{mpi} (mpi4py)", "fake": "torch's own call alone"}
    return {system: ours.get(system, readers_name(system)) for system in COLORS}


def _draw_times(panel: Any, rows: list[Row], names: dict[str, str], copy_gb_per_s: float) -> None:
    sizes = [row.bytes for row in rows]
    for system in rows[0].systems:
        times = [row.systems[system].p50_us for row in rows]
        panel.plot(sizes, times, marker=".", color=COLORS[system], label=names[system])
    copies = [size / copy_gb_per_s / 1e3 for size in sizes]
    panel.plot(sizes, copies, **LIMIT, label="memcpy of as much")
    panel.set_yscale("log")
    panel.set_ylim(bottom=min(row.systems[s].p50_us for row in rows for s in row.systems) / 2)
    panel.yaxis.set_major_formatter(lambda us, _: _text_of_time(us))


def _draw_rates(panel: Any, rows: list[Row], names: dict[str, str], copy_gb_per_s: float) -> None:
    sizes = [row.bytes for row in rows]
    for system in rows[0].systems:
        rates = [row.systems[system].busbw_gb_per_s for row in rows]
        panel.plot(sizes, rates, marker=".", color=COLORS[system], label=names[system])
    panel.axhline(copy_gb_per_s, **LIMIT)
    panel.set_ylim(bottom=0)


def _text_of_time(us: float) -> str:
    for unit, in_us in (("s", 1e6), ("ms", 1e3)):
        if us >= in_us:
            return f"{us / in_us:g} {unit}"
    return f"{us:g} us"


def _finish(panel: Any, sizes: list[int]) -> None:
    panel.set_xscale("log", base=2)
    panel.set_xticks(sizes, [text_of_size(size) for size in sizes], rotation=45, ha="right")
    panel.minorticks_off()
    panel.set_xlabel("size of the message")
    panel.grid(alpha=0.3)
