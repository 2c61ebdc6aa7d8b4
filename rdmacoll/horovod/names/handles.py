"""Handles: what an operation in flight is to a script, an integer.

Floor: rdmacoll/horovod/names. Thread: any.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from .exceptions import HorovodInternalError
from .stalls import wait_for

if TYPE_CHECKING:
    from .native import NamedWork

Result = Callable[["NamedWork"], Any]  # of an operation that has ended well

# For so long a name is taken although its operation may have ended, unless somebody has seen that:
# else it would be luck whether one that is given twice by mistake is refused.
UNSEEN_S = 0.01


@dataclass
class _InFlight:
    work: "NamedWork"
    result: Result
    name: str


_in_flight: dict[int, _InFlight] = {}
_numbers = count()
_unseen_since: dict[str, float] = {}  # by name


def check_name(name: str) -> None:
    """Raises ValueError for one that was submitted just now, and whose end nobody has seen."""
    if time.monotonic() - _unseen_since.get(name, -UNSEEN_S) < UNSEEN_S:
        raise ValueError(
            f"{name!r} was submitted on this rank just before, and nobody has waited for it; wait "
            "for it, or give this operation another name"
        )


def new_handle(work: "NamedWork", result: Result, name: str) -> int:
    handle = next(_numbers)
    _in_flight[handle] = _InFlight(work, result, name)
    _unseen_since[name] = time.monotonic()
    return handle


def poll(handle: int) -> bool:
    """Whether the operation has ended, so that synchronize() does not wait.

    Raises ValueError for what is no handle, or was synchronized.
    """
    if handle not in _in_flight:
        raise ValueError(f"handle={handle!r} is no operation in flight, or was synchronized")
    entry = _in_flight[handle]
    is_done = entry.work.done()
    if is_done:
        _unseen_since.pop(entry.name, None)
    return is_done


def synchronize(handle: Any) -> Any:
    """Waits for an operation, and returns its result; None if that was returned before.

    Raises HorovodInternalError if it has failed.
    """
    if callable(handle):  # of a sparse allreduce
        return handle()
    entry = _in_flight.pop(handle, None)
    if entry is None:
        return None
    _unseen_since.pop(entry.name, None)
    return finish(entry.work, entry.result)


def finish(work: "NamedWork", result: Result) -> Any:
    try:
        wait_for(work)
    except RuntimeError as error:
        if isinstance(error, HorovodInternalError):
            raise
        raise HorovodInternalError(str(error)) from error
    return result(work)


def forget_all() -> None:
    """Their groups are ended."""
    _in_flight.clear()
    _unseen_since.clear()
