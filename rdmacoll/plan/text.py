"""The answer for people: every line as it is printed. Pure."""

import textwrap
from collections.abc import Iterable, Iterator

from rdmacoll.base.byte_sizes import text_of_size

from . import steps
from .facts import Facts, Forecast
from .words import link_lines, role_heading, sentence

COLUMNS = 100
MOST_ROLES = 6
HEADINGS = {  # and how wide their columns are
    "algorithm": -17,
    "time": 10,
    "out of a host": 15,
    "of the least": 14,
    "network": 9,
    "memory": 8,
    "tiles": 8,
}
NOTE = """\
out of a host: of the one that sends most. network, memory: latencies that follow each other."""
UNITS_NS = {"d": 86_400e9, "h": 3_600e9, "s": 1e9, "ms": 1e6, "us": 1e3}


def lines(facts: Facts) -> Iterator[str]:
    yield from heading(facts)
    yield ""
    yield from table(facts)
    yield ""
    yield from plan_in_words(facts)
    for plan in facts.plans:
        yield ""
        yield from steps.lines(plan)


def heading(facts: Facts) -> Iterator[str]:
    size = f" of {text_of_size(facts.bytes)}" if facts.bytes else ""
    hosts = "1 host" if len(facts.hosts) == 1 else f"{len(facts.hosts)} hosts"
    yield f"{facts.collective}{size} on {hosts} ({facts.shape}): {facts.ranks} ranks"
    if facts.least_out_bytes:
        least = text_of_size(facts.least_out_bytes)
        yield f"at least {least} must leave the host that sends most, whatever the plan"


def table(facts: Facts) -> Iterator[str]:
    yield _row(HEADINGS)
    for forecast in facts.algorithms:
        yield _row(_cells(forecast, facts.least_out_bytes)) + _mark(facts, forecast.name)
    yield f"Times are {facts.times}."
    yield NOTE


def _row(cells: Iterable[str]) -> str:
    widths = HEADINGS.values()
    return "".join(
        f"{cell:>{width}}" if width > 0 else f"{cell:<{-width}}"
        for cell, width in zip(cells, widths, strict=True)
    )


def _cells(forecast: Forecast, least: int) -> Iterator[str]:
    yield forecast.name
    yield text_of_time(forecast.time_ns)
    yield text_of_size(forecast.out_bytes) if least else "-"
    yield f"{forecast.out_bytes / least:.2f}x" if least else "-"
    yield from map(str, (forecast.network_latencies, forecast.memory_latencies, forecast.tiles))


def _mark(facts: Facts, name: str) -> str:
    if name == facts.taken:
        return "  <- taken"
    return "  <- shown" if name == facts.shown else ""


def text_of_time(time_ns: int) -> str:
    for unit, unit_ns in UNITS_NS.items():
        if time_ns >= unit_ns:
            return f"{time_ns / unit_ns:.1f} {unit}"
    return f"{time_ns} ns"


def plan_in_words(facts: Facts) -> Iterator[str]:
    forecast = next(each for each in facts.algorithms if each.name == facts.shown)
    blocks = f"{facts.blocks} blocks" if facts.blocks > 1 else "1 block"
    tiles = f"; {forecast.tiles} tiles follow each other" if forecast.tiles > 1 else ""
    yield f"{facts.shown}: {blocks}{tiles}" if facts.bytes else facts.shown
    for line in link_lines(facts.links, len(facts.hosts)):
        yield from _wrapped(line, "  ")
    for role in facts.roles[:MOST_ROLES]:
        yield from _wrapped(role_heading(role), "  ")
        for statement in role.statements:
            yield from _wrapped(sentence(statement), "    - ")
    if len(facts.roles) > MOST_ROLES:
        yield f"  and {len(facts.roles) - MOST_ROLES} other kinds of ranks; --rank R shows one"
    if not facts.is_whole:
        yield f"  not all of {facts.ranks} ranks were looked at; --rank R shows the steps of any"


def _wrapped(line: str, indent: str) -> list[str]:
    return textwrap.wrap(
        line,
        COLUMNS,
        initial_indent=indent,
        subsequent_indent="      ",
        break_on_hyphens=False,
    )
