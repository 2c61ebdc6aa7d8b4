"""The result as text: the file that RDMACOLL_TUNING names, and what people see. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from rdmacoll.base.byte_sizes import SHIFTS, text_of_size

from .choice import Measured, best_algorithms, rows_of
from .links import CLOSE, Fit
from .model import fit


@dataclass(frozen=True)
class Group:
    """What was measured on: rows hold for groups like it."""

    ranks: int
    layout: str  # mapped, unmapped, or hosts=2x4
    versions: str

    def __str__(self) -> str:
        peers = {"mapped": "all peers mapped", "unmapped": "no peers mapped"}
        return f"{self.ranks} ranks, {peers.get(self.layout, self.layout)} · {self.versions}"


def file_lines(group: Group, measured: list[Measured], links: Fit | None) -> Iterator[str]:
    yield "# Which algorithm to take when, as `rdmacoll tune` has measured it on"
    yield f"# {group}."
    yield "# RDMACOLL_TUNING names this file, on all ranks. Rows may be edited, and files put one"
    yield "# behind the other. What has no rows keeps the defaults."
    if links:
        yield ""
        yield "# What links cost, for forecasts of what has no rows and for `rdmacoll plan`."
        yield from (f"# {line}" for line in quality_lines(links))
        yield from links.rows()
    for one in measured:
        yield ""
        for algorithm, times_us in one.times_us.items():
            yield f"# {one.collective} {algorithm}: {fit(one.sizes_bytes, times_us)}"
        for row in rows_of(one.sizes_bytes, best_algorithms(one)):
            up_to = "any" if row.up_to_bytes is None else exact_size(row.up_to_bytes)
            where = f"{one.collective} {group.layout} world={group.ranks}"
            yield f"{where} up_to={up_to} {row.algorithm}"


def link_lines(links: Fit) -> Iterator[str]:
    """For people."""
    yield ""
    yield "what links cost, so that forecasts fit these times"
    yield from (f"  {row}" for row in links.rows())
    yield from (f"  {line}" for line in quality_lines(links))


def quality_lines(links: Fit) -> Iterator[str]:
    low, high = links.middle_half
    yield f"forecast / measured: median {links.median_ratio:.2f}, half {low:.2f} to {high:.2f}"
    yield (
        f"the forecast's choice is within {CLOSE - 1:.0%} of the best measured in "
        f"{links.close_choices} of {links.choices} cells"
    )


def exact_size(size_bytes: int) -> str:
    for unit in "GMK":
        if size_bytes % (1 << SHIFTS[unit]) == 0:
            return f"{size_bytes >> SHIFTS[unit]}{unit}"
    return str(size_bytes)


def screen_lines(measured: Measured) -> Iterator[str]:
    """Times in us; the gain is of the tuned choice over the default one."""
    names = list(measured.times_us)
    longest = max(map(len, names))
    widths = [*(max(len(name), 8) + 2 for name in names), longest + 2, longest + 2]

    def line(first: str, cells: list[str], last: str) -> str:
        columns = zip(cells, widths, strict=True)
        return f"{first}{''.join(f'{cell:>{width}}' for cell, width in columns)}{last:>8}"

    yield ""
    yield line(f"{measured.collective:<15}{'size':>9}", [*names, "default", "tuned"], "gain")
    for index, (size, tuned) in enumerate(
        zip(measured.sizes_bytes, best_algorithms(measured), strict=True)
    ):
        times = {name: times_us[index] for name, times_us in measured.times_us.items()}
        default = measured.defaults[index]
        cells = [*(f"{time:.1f}" for time in times.values()), default, tuned]
        yield line(f"{text_of_size(size):>24}", cells, f"{times[default] / times[tuned]:.2f}x")
