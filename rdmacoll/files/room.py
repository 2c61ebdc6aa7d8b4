"""Room: waits until servers have freed what was thrown away. What a program removes takes some
tenths of a second to be freed, and it may write at once.

Floor: rdmacoll/files. Thread: any.
"""

from __future__ import annotations

import time

from ..ps.freeing.held import thrown_away
from .board import FileBoard

MOST_S = 3.0  # what is held by others, or by a server that is lost, is not waited for
PAUSE_S = 0.02


def wait_for_room(files: FileBoard) -> bool:
    """Whether there was anything that servers were about to free. It is worth to try it again.
    Raises OSError (EIO)."""
    deadline_s = time.monotonic() + MOST_S
    with files.store() as board:
        away = thrown_away(board.words)
        before = away.all()
        was_any = bool(before)
        while before & away.all() and time.monotonic() < deadline_s:
            time.sleep(PAUSE_S)
        dropped = [board.drops.dropped_by(server) for server in range(board.count_servers())]
        _, drops = board.drops.after(max(dropped, default=0))
        for server, known in enumerate(dropped):
            while known < drops and time.monotonic() < deadline_s:
                was_any = True
                time.sleep(PAUSE_S)
                known = board.drops.dropped_by(server)
    return was_any
