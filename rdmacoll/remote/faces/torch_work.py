"""A transfer as torch's Work: what a transport returns for async_op=True."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..memory.checks import check_timeout
from ..memory.futures import future_of
from ..memory.works import RemoteWork

# Of a wait with a limit that may have passed: none at all means another one.
LEAST_WAIT = timedelta(milliseconds=1)


class RdmaWork(dist.Work):
    """A work, and one that begins when it has ended well. None: there is nothing to do.

    timeout: in seconds, of a wait that names none.
    """

    def __init__(
        self,
        work: RemoteWork[Any] | None,
        timeout: float,
        then: Callable[[], RemoteWork[Any]] | None = None,
    ) -> None:
        super().__init__()
        self._lock = threading.Lock()  # what follows
        self._work = work
        self._then = then
        self._future: torch.futures.Future[list[torch.Tensor]] | None = None
        self._timeout = timeout

    def _current(self) -> RemoteWork[Any] | None:
        """The second work, if the first has ended well."""
        with self._lock:
            work, then = self._work, self._then
            if work is not None and then is not None and work.done():
                self._then = None
                if _failure(work) is None:
                    self._work = then()
            return self._work

    def is_completed(self) -> bool:
        work = self._current()
        return work is None or work.done()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """timeout: 0 is that of the call which began it. TimeoutError leaves it in flight."""
        seconds = timeout.total_seconds() or self._timeout
        check_timeout(seconds)
        end = time.monotonic() + seconds
        waited_for = None
        while (work := self._current()) is not waited_for:
            assert work is not None
            work.wait(max(end - time.monotonic(), 0.0))
            waited_for = work
        return True

    def exception(self) -> Exception | None:
        work = self._current()
        return _failure(work) if work is not None and work.done() else None

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return []

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """The same every time. It ends in a thread of Python's, soon after the transfer."""
        with self._lock:
            if self._future is None:
                self._future = future_of(
                    self.is_completed,
                    lambda seconds: self.wait(timedelta(seconds=seconds)),
                    self.result,
                )
            return self._future


def _failure(work: RemoteWork[Any]) -> Exception | None:
    try:
        work.wait()
    except Exception as error:
        return error
    return None
