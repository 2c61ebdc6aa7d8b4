"""join(): a rank that has no more to do goes with the others until they have none either.

Floor: rdmacoll/horovod/training. Thread: any; nothing else of hvd in this process meanwhile.
"""

import torch

from rdmacoll.horovod.names import ops, timeline
from rdmacoll.horovod.names.handles import finish, synchronize
from rdmacoll.horovod.names.operations import allreduce_async_
from rdmacoll.horovod.names.world import current, rank

from .gradients import Gradients, follow
from .meeting import meet_all

RANK_BITS = 20
MOST_STEPS = 1 << 40


def join(device: int = -1) -> int:
    """Waits until all ranks have called it; meanwhile this one adds zeros to what the others do.

    Returns the rank that called it last. Others go on with allreduce, by name and in optimizers,
    with this rank's zeros in it; what else they submit fails on them. device: of no meaning here.
    """
    meet_all()
    world = current()
    state = world.sets[0]
    assert state.group is not None
    work = state.group.join()
    if timeline.is_on():
        timeline.note(state, "Join", "join", True, [], work.times())
    steps = follow([one for ref in world.closed_with_it if isinstance(one := ref(), Gradients)])
    last = finish(work, lambda work: work.last_joined())
    state.count_anew()
    return _last_of_all(steps, world.rank == last)


def _last_of_all(steps: int, came_last: bool) -> int:
    """The rank that has made the last step itself, as others take their parameters from it.

    Optimizers do not ask the sequencer, so it may hear of joins in another order. By names alone
    nobody has made steps, and its order counts.
    """
    own = (((MOST_STEPS - steps) << 1) + came_last << RANK_BITS) + rank()
    key = torch.tensor([own])
    synchronize(allreduce_async_(key, name="rdmacoll.join.last", op=ops.Max))
    return int(key.item()) & ((1 << RANK_BITS) - 1)
