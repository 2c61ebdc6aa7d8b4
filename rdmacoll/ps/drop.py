"""drop: has the servers free tables, and waits for them.

Floor: rdmacoll/ps. Thread: any.
"""

from __future__ import annotations

import time

from .board import DROPPED, GENERATION, LAYOUT, PACE, Board, Table
from .status import SILENT_S
from .worker import Worker

PAUSE_S = 0.02  # between looks


def drop(worker: Worker, name: str, timeout: float) -> None:
    """As KV.drop()."""
    board = worker.board
    servers = range(board.count_servers())
    tables = _tables(board, name)
    if not tables:
        raise ValueError(f"name={name!r} is no table of this job: nothing was dropped")
    # A name stays until its table is to be dropped: who finds it can drop it again.
    known = max((board.drops.dropped_by(server) for server in servers), default=0)
    drops = board.drops.add([table.number for table in tables.values()], known)
    _forget(board, name, tables)
    worker.forget_dropped()
    deadline = time.monotonic() + timeout
    for server in servers:
        _wait(worker, server, drops, name, deadline)


def _tables(board: Board, name: str) -> dict[str, Table]:
    """Of this name, and of all `name/...`."""
    names = [one for _, (one, *_) in board.about_tables() if one.startswith(f"{name}/")]
    found = {one: board.find_table(one) for one in [name, *names]}
    return {one: table for one, table in found.items() if table is not None}


def _forget(board: Board, name: str, tables: dict[str, Table]) -> None:
    words = board.words
    for one, table in tables.items():
        words.say(f"about/{table.number}", DROPPED)
        words.change(f"table/{one}", table.to_word(), DROPPED)
    # What was said of an optimizer is under its own name, above those of its tables.
    above = {one.rpartition("/")[0] for one in tables}
    for one in (own for own in {name, *tables, *above} if f"{own}/".startswith(f"{name}/")):
        for of in LAYOUT, PACE, GENERATION:
            said = words.hear(f"word/{of}/{one}")
            if said is not None:
                words.change(f"word/{of}/{one}", said, DROPPED)


def _wait(worker: Worker, server: int, drops: int, name: str, deadline: float) -> None:
    """One that shows no sign of life is not waited for: it drops them when it goes on."""
    beats, since = worker.board.beats_of(server), time.monotonic()
    while worker.board.drops.dropped_by(server) < drops:
        now = time.monotonic()
        beat = worker.board.beats_of(server)
        if beat != beats:
            beats, since = beat, now
        elif now - since > SILENT_S:
            return
        if now > deadline:
            raise TimeoutError(f"server {server} has not freed {name!r} in time; it does later")
        time.sleep(PAUSE_S)
