"""run(): trains until it is through, with whoever is there."""

import datetime
from collections.abc import Callable
from typing import TypeVar

import torch.distributed as dist
from torch.distributed.distributed_c10d import default_pg_timeout

from .membership import Joiners, Membership
from .state import State

T = TypeVar("T")
JOIN_TIMEOUT = datetime.timedelta(minutes=10)
ADMIT_TIMEOUT = datetime.timedelta(seconds=30)


def run(
    train: Callable[[State], T],
    state: State,
    *,
    timeout: datetime.timedelta = default_pg_timeout,
    join_timeout: datetime.timedelta = JOIN_TIMEOUT,
    admit_timeout: datetime.timedelta = ADMIT_TIMEOUT,
) -> T:
    """Makes the default group, gives all ranks the same state, and returns what train(state) does.

    When ranks are lost, the others go on from the last commit in a smaller group; when one comes
    back (rdmarun --elastic), all go on in a larger one from the commit that let it in. Either way
    train is called again: what belongs to a group (DistributedDataParallel) is made in it, ranks
    are numbered anew, and it begins where the state says.

    timeout: of the group's operations, as in init_process_group
    join_timeout: so long one that comes back waits for the others to let it in
    admit_timeout: so long the others wait, in a commit, for one that was lost again on the way

    Raises ValueError for times that cannot hold, RuntimeError where a default group exists already
    or nobody holds the state any more, TimeoutError on a rank that was not let in, and whatever
    train() raises that is no loss of ranks.
    """
    _check(timeout, join_timeout, admit_timeout)
    membership = Membership(timeout, join_timeout, admit_timeout)
    state._begin(membership.is_joiner, membership.look_for_joiners)
    joiners: Joiners | None = None
    while True:
        try:
            if joiners is not None:
                membership.grow(joiners)
            state._sync()
            membership.has_state()
            result = train(state)
            state.commit()
            membership.end(str(state._commits))
            return result
        except Joiners as found:
            joiners = found.with_traceback(None)  # which holds the old group
        except RuntimeError as error:
            joiners = None
            membership.shrink(error)


def _check(
    timeout: datetime.timedelta,
    join_timeout: datetime.timedelta,
    admit_timeout: datetime.timedelta,
) -> None:
    times = {"timeout": timeout, "join_timeout": join_timeout, "admit_timeout": admit_timeout}
    for name, value in times.items():
        if value <= datetime.timedelta(0):
            raise ValueError(f"{name}={value.total_seconds():g} s: give a time above 0")
    if timeout <= admit_timeout:
        raise ValueError(
            f"timeout={timeout.total_seconds():g} s is not above admit_timeout="
            f"{admit_timeout.total_seconds():g} s, which others may spend in it; raise the first "
            "or lower the second"
        )
    if dist.is_initialized():
        raise RuntimeError(
            "run() makes the default group itself, since a rank that comes back cannot call "
            "init_process_group; leave that call out"
        )
