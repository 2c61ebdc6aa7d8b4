"""A status for people: every line as it is printed. Pure.

Floor: rdmacoll/servers. Thread: any.
"""

import time
from collections.abc import Iterator, Sequence

from rdmacoll.base.byte_sizes import text_of_size
from rdmacoll.base.printable import printable

from .status import ABSENT, MORE_MEMORY, SERVES, SILENT, JobStatus, ServerStatus, TableStatus

SERVERS = (
    *("server", "host", "pid", "started", "buckets", "alone"),
    *("tables", "rows", "elements", "pushes", "pulls", "memory"),
)
TABLES = ("table", "kind", "shape", "optimizer", "rows", "step", "behind")
WORDS_OF_SERVERS = {1}  # columns of words, which begin at the left
WORDS_OF_TABLES = {0, 1, 2, 3, 6}
MOST_OF_A_NAME = 60
MOST_RANKS = 4  # that are named as behind


def lines(status: JobStatus) -> Iterator[str]:
    kept = "twice" if status.replicas > 1 and len(status.servers) > 1 else "once"
    yield f"{len(status.servers)} servers of the job at {printable(status.store)}, all kept {kept}"
    yield ""
    yield from _table(SERVERS, [_server(one) for one in status.servers], WORDS_OF_SERVERS)
    for one in status.servers:
        if one.state != SERVES:
            yield f"server {one.number} {_state(one)}"
        elif one.without_room:
            yield (
                f"server {one.number} has no room for {one.without_room} buckets that it was to "
                f"hold: start more servers, or {MORE_MEMORY}"
            )
    yield ""
    if status.tables:
        yield from _table(TABLES, [_of_table(one) for one in status.tables], WORDS_OF_TABLES)
    else:
        yield "no worker has made a table yet"


def _server(one: ServerStatus) -> list[str]:
    if one.state == ABSENT:
        return [str(one.number), *["-"] * (len(SERVERS) - 1)]
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.began_s))
    counts = (one.buckets, one.alone, one.tables, one.rows, one.elements, one.pushes, one.pulls)
    memory = f"{text_of_size(one.memory_bytes)} of {text_of_size(one.memory_limit_bytes)}"
    host = printable(one.host, MOST_OF_A_NAME)
    return [str(one.number), host, str(one.pid), began, *map(str, counts), memory]


def _state(one: ServerStatus) -> str:
    if one.state == ABSENT:
        return "has not started yet"
    if one.state == SILENT:
        return f"has given no sign of life for {one.silent_s:.0f} s; above is what it said last"
    return "has ended as it was told to; above is what it said last"


def _of_table(one: TableStatus) -> list[str]:
    shape = " x ".join(map(str, one.shape)) or "1"
    rows = "-" if one.rows is None else str(one.rows)
    texts = (printable(text, MOST_OF_A_NAME) for text in (one.name, one.kind))
    return [*texts, shape, printable(one.optimizer, MOST_OF_A_NAME), rows, *_steps(one.steps)]


def _steps(steps: list[int] | None) -> tuple[str, str]:
    """Of the worker that is first; by how many the last ones are behind it, and which."""
    if not steps:
        return "-", "-"
    first, last = max(steps), min(steps)
    if first == last:
        return str(first), "0"
    ranks = [str(rank) for rank, step in enumerate(steps) if step == last]
    named = ", ".join(ranks[:MOST_RANKS]) + (", ..." if len(ranks) > MOST_RANKS else "")
    return str(first), f"{first - last}: {'rank' if len(ranks) == 1 else 'ranks'} {named}"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]], words: set[int]) -> Iterator[str]:
    all_rows = [heading, *rows]
    widths = [max(len(row[column]) for row in all_rows) for column in range(len(heading))]
    for row in all_rows:
        cells = [
            f"{cell:<{width}}" if column in words else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
