"""What is said, and when it is given up, where ranks wait for a name that others do not submit.

The first rank of a set knows who is missing. A rank that waits asks it; all hear the answer, and
who has asked first says it, so that it is said once.
Floor: rdmacoll/horovod/names. Thread: any.
"""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdmacoll.base.rank_numbers import ranks_text

from .exceptions import HorovodInternalError
from .limits import read_seconds, read_switch

if TYPE_CHECKING:
    from .native import NamedGroup, NamedWork
    from .world import SetState

DISABLE = "HOROVOD_STALL_CHECK_DISABLE"
CHECK = "HOROVOD_STALL_CHECK_TIME_SECONDS"
SHUTDOWN = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"
USUAL_CHECK_S = 60.0
ANSWER_S = 0.5


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
    while not _ends_within(work, step_s):
        waited_s += step_s
        is_to_say = check_s > 0 and waited_s - said_s >= check_s
        gives_up = 0 < shutdown_s <= waited_s
        if not is_to_say and not gives_up:
            continue
        for _, group in _own_sets():
            group.ask_who_is_late()
        if _ends_within(work, ANSWER_S):
            return
        said, known = _late()
        if is_to_say:
            said_s = waited_s
            if said:
                print(f"rdmacoll.horovod: for {waited_s:g} s {said}", file=sys.stderr)
        if gives_up:
            raise HorovodInternalError(
                f"an operation has waited for {waited_s:g} s, the limit of {SHUTDOWN}; "
                f"{known or 'the first rank of its set has not said for whom'}"
            ) from TimeoutError(SHUTDOWN)


def _ends_within(work: "NamedWork", timeout_s: float) -> bool:
    """Raises what it has ended with."""
    try:
        work.wait(timeout_s)
    except RuntimeError:
        if work.done():  # it is no time that has passed
            raise
        return False
    return True


def _own_sets() -> "list[tuple[SetState, NamedGroup]]":
    from .world import current

    sets = current().sets.values()
    return [(state, state.group) for state in sets if state.group is not None]


def _late() -> tuple[str, str]:
    """What this rank is to say, and what it knows, of all its sets."""
    from .world import rank

    to_say, known = [], []
    for state, group in _own_sets():
        if (late := group.take_late()) is None:
            continue
        words = [
            f"{one.name} is not submitted by "
            + ranks_text(state.ranks[missing] for missing in one.missing)
            for one in late.names
        ]
        if late.more:
            words.append(f"{late.more} names more wait")
        known += words
        if state.ranks[late.asked_by] == rank():
            to_say += words
    return "; ".join(to_say), "; ".join(known)
