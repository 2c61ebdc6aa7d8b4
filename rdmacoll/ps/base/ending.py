"""When a server ends, and why: it was told to, the job's Store is gone, or another process is this
server now.

Floor: rdmacoll/ps/base. Thread: any.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_FAILED = 25  # looks at a Store that cannot be reached: 5 s
MOST_UNANSWERED = 300  # looks while it says nothing, as one that is stopped: a minute


class Ending:
    """Why a server ends: what is said first counts."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self.why = ""
        self.is_failure = False
        self.leaves_threads = False  # that still wait for the Store

    def end(self, why: str, is_failure: bool = False) -> None:
        if not self.why:
            self.why, self.is_failure = why, is_failure
        self._stop()


class StoreLife:
    """Whether the job's Store is gone. What counts is looks of this server's own: one that was
    stopped has not looked."""

    def __init__(self) -> None:
        self._looks = 0
        self._has_failed = False

    def answered(self) -> None:
        self._looks, self._has_failed = 0, False

    def failed(self) -> None:
        self._has_failed = True

    def looks_gone(self) -> bool:
        """Call it once for each look."""
        self._looks += 1
        return self._looks >= (MOST_FAILED if self._has_failed else MOST_UNANSWERED)
