"""How far a run has come, on stderr: what is printed to stdout stays the result alone.

Ranks write to their launcher and not to a terminal, so these are lines, and few of them.
Thread: the main one.
"""

import sys
import time
from collections.abc import Callable

EVERY_S = 5.0


class Progress:
    """prog: what is running; of: how many steps it has, which take about as long; what: a step."""

    def __init__(
        self,
        prog: str,
        of: int,
        what: str,
        speaks: bool,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prog, self._of, self._what, self._speaks = prog, of, what, speaks
        self._now_s = now_s
        self._began_s = self._said_s = now_s()
        self._done = 0

    def step(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        now_s = self._now_s()
        if not self._speaks or self._done == self._of or now_s - self._said_s < EVERY_S:
            return
        self._said_s = now_s
        left_s = (now_s - self._began_s) / self._done * (self._of - self._done)
        print(
            f"{self._prog}: {self._done} of {self._of} {self._what}, about {text_of(left_s)} left",
            file=sys.stderr,
            flush=True,
        )


def text_of(seconds: float) -> str:
    """As exact as an estimate is."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"
