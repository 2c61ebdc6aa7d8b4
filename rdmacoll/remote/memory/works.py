"""What is in flight to or from another process, until it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import torch

from .checks import check_timeout
from .futures import future_of

if TYPE_CHECKING:
    from ... import _C

Value = TypeVar("Value")


class RemoteWork(Generic[Value]):
    """A read, a write, an update or a wait in flight. It keeps its tensor until it has ended."""

    def __init__(self, work: _C.RemoteWork, value: Callable[[], Value]) -> None:
        """value: what wait() returns, once the work has ended well."""
        self._work = work
        self._value = value

    def done(self) -> bool:
        """Whether it has ended, well or not. Somebody waits, or a thread of rdmacoll drives it."""
        return self._work.done()

    def wait(self, timeout: float | None = None) -> Value:
        """Waits for its end; returns the tensor that was read into, or what a word was before.

        timeout: in seconds, of this wait alone; the work stays in flight, and may use its tensor.
        Raises TimeoutError, RevokedError, PeerError. Any thread.
        """
        if timeout is not None:
            check_timeout(timeout)
        self._work.wait(-1.0 if timeout is None else timeout)
        return self._value()

    def future(self) -> torch.futures.Future[Value]:
        """What wait() returns or raises, as a future of torch; a new one every time.

        Its callbacks run in a thread of rdmacoll's, within a millisecond or two of the work's end.
        """
        return future_of(self.done, self.wait, self.wait)


def nothing() -> None:
    """The value of what is waited for and returns none."""
