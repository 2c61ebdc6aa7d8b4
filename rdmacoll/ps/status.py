"""What the servers of the job do, as they have said it on the Board.

Floor: rdmacoll/ps. Thread: any.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from ..servers.status import (
    ABSENT,
    ENDED,
    SERVES,
    SILENT,
    JobStatus,
    ServerStatus,
    TableStatus,
)
from .board import Board
from .keeper import BEAT_S

SILENT_S = 3.0  # since a server has said something: others give it up then
LISTEN_S = 5 * BEAT_S  # to hear a beat of one that seems to be silent


def status_of(board: Board) -> JobStatus:
    """Raises LookupError where no server has come yet."""
    job = board.servers()
    if job is None:
        raise LookupError("no server of this job has started yet")
    servers = [_heard(board, board.status_of(server)) for server in range(board.count_servers())]
    serving = [one for one in servers if one.state == SERVES]
    return JobStatus(board.address, job.replicas, servers, list(_tables(board, serving)))


def _heard(board: Board, said: ServerStatus) -> ServerStatus:
    """With whether it is silent. Clocks of hosts differ: a beat proves that it is not."""
    age_s = time.time() - said.said_s
    if said.state in (ABSENT, ENDED) or abs(age_s) < SILENT_S:
        return said
    beats = board.beats_of(said.number)
    deadline = time.monotonic() + LISTEN_S
    while time.monotonic() < deadline:
        time.sleep(BEAT_S)
        if board.beats_of(said.number) != beats:
            return said
    return replace(said, state=SILENT, silent_s=max(age_s, SILENT_S))


def _tables(board: Board, serving: list[ServerStatus]) -> Iterator[TableStatus]:
    for number, (name, kind, optimizer, shape) in board.about_tables():
        key = str(number)
        rows = sum(one.rows_of.get(key, 0) for one in serving) if kind == "rows" else None
        paced = [one.steps_of[key] for one in serving if key in one.steps_of]
        # Servers say it at other moments: the number of workers may change in between.
        steps = [min(of_rank) for of_rank in zip(*paced, strict=False)] if paced else None
        yield TableStatus(number, name, kind, shape, optimizer, rows, steps)
