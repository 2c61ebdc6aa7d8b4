"""What is under way at servers, and how a caller waits for it.

Floor: rdmacoll/ps/base. Thread: any.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ...remote.memory.checks import check_timeout

if TYPE_CHECKING:
    from ... import _C

Look = Callable[[], None]
LOOK_S = 0.5  # between looks at whether who is waited for is there


class Pending:
    """A push or a pull under way. It keeps its tensor until it has ended."""

    def __init__(
        self,
        batch: _C.PsBatch,
        out: torch.Tensor | None,
        timeout: float,
        about: Callable[[], str],
        staged: torch.Tensor | None = None,
    ) -> None:
        """about: what a TimeoutError says besides. staged: what is pulled for `out`, which is not
        in this host's memory."""
        self._about = about
        self._batch = batch
        self._out = out
        self._timeout = timeout
        self._staged = staged

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._batch.done()

    def wait(self, timeout: float | None = None) -> torch.Tensor | None:
        """Waits for its end; returns what was pulled; None: it is a push.

        timeout: in seconds; None is the KV's. Raises TimeoutError, remote.PeerError. Any thread.
        """
        if timeout is not None:
            check_timeout(timeout)
        return self._wait(self._timeout if timeout is None else timeout, None)

    def _wait(self, timeout: float, look: Look | None) -> torch.Tensor | None:
        """look: is called now and then; what it raises ends the wait."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            try:
                self._batch.wait(left if look is None else min(left, LOOK_S))
                break
            except TimeoutError as error:
                if look is not None:
                    look()
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"{error}{self._about()}") from None
        if self._out is not None and self._staged is not None:
            self._out.copy_(self._staged, non_blocking=True)
            self._staged = None
        return self._out


def finish(pending: list[Pending], look: Look | None = None) -> None:
    """Waits for all of these, and forgets those that have ended, well or not. Raises the first
    error of one; the others are still in the list, if they go on. look: as of Pending._wait()."""
    while pending:
        try:
            pending[-1]._wait(pending[-1]._timeout, look)
        finally:
            if pending[-1].done():
                pending.pop()
