"""What is said, and when it is given up, where ranks wait for a name that others do not submit.

The first rank of a set knows who is missing, and says so while it waits itself.
Floor: rdmacoll/horovod/names. Thread: any.
"""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .exceptions import HorovodInternalError
from .limits import read_seconds, read_switch

if TYPE_CHECKING:
    from .native import NamedWork

DISABLE = "HOROVOD_STALL_CHECK_DISABLE"
CHECK = "HOROVOD_STALL_CHECK_TIME_SECONDS"
SHUTDOWN = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"
USUAL_CHECK_S = 60.0


@dataclass(frozen=True)
class Limits:
    """0: never."""

    check_s: float = USUAL_CHECK_S
    shutdown_s: float = 0.0


_limits = Limits()


def read_limits() -> None:
    """Raises ValueError for a variable that is no time, or no switch."""
    global _limits
    given = Limits(read_seconds(CHECK, USUAL_CHECK_S), read_seconds(SHUTDOWN, 0.0))
    _limits = Limits(0.0, 0.0) if read_switch(DISABLE) else given


def wait_for(work: "NamedWork") -> None:
    """Raises what the operation has ended with, and HorovodInternalError for one that stalls."""
    check_s, shutdown_s = _limits.check_s, _limits.shutdown_s
    step_s = min((one for one in (check_s, shutdown_s) if one > 0), default=-1.0)
    waited_s, said_s = 0.0, 0.0
    while True:
        try:
            return work.wait(step_s)
        except RuntimeError:
            if work.done():  # it is no time that has passed
                raise
        waited_s += step_s
        if check_s > 0 and waited_s - said_s >= check_s:
            said_s = waited_s
            if missing := _missing():
                print(f"rdmacoll.horovod: for {waited_s:g} s {missing}", file=sys.stderr)
        if shutdown_s > 0 and waited_s >= shutdown_s:
            raise HorovodInternalError(
                f"an operation has waited for {waited_s:g} s, the limit of {SHUTDOWN}; "
                f"{_missing() or 'the first rank of its set may know for whom'}"
            ) from TimeoutError(SHUTDOWN)


def _missing() -> str:
    from .world import current

    words = []
    for state in current().sets.values():
        for name, ranks in state.group.waiting() if state.group is not None else []:
            own = ", ".join(str(state.ranks[rank]) for rank in ranks)
            words.append(f"{name} is not submitted by ranks {own}")
    return "; ".join(words)
