"""drop: has the servers free tables, and waits for them.

Floor: rdmacoll/ps. Thread: any.
"""

from __future__ import annotations

import time

from .status import SILENT_S
from .worker import Worker

PAUSE_S = 0.02  # between looks


def drop(worker: Worker, name: str, timeout: float) -> None:
    """As KV.drop()."""
    drops = worker.board.drop_tables(name)
    if drops == 0:
        raise ValueError(f"name={name!r} is no table of this job: nothing was dropped")
    worker.forget_dropped()
    deadline = time.monotonic() + timeout
    for server in range(worker.board.count_servers()):
        _wait(worker, server, drops, name, deadline)


def _wait(worker: Worker, server: int, drops: int, name: str, deadline: float) -> None:
    """One that shows no sign of life is not waited for: it drops them when it goes on."""
    beats, since = worker.board.beats_of(server), time.monotonic()
    while worker.board.dropped_by(server) < drops:
        now = time.monotonic()
        beat = worker.board.beats_of(server)
        if beat != beats:
            beats, since = beat, now
        elif now - since > SILENT_S:
            return
        if now > deadline:
            raise TimeoutError(f"server {server} has not freed {name!r} in time; it does later")
        time.sleep(PAUSE_S)
