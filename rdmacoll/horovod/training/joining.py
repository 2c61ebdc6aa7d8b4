"""join(): a rank that has no more to do goes with the others until they have none either.

Floor: rdmacoll/horovod/training. Thread: any; nothing else of hvd in this process meanwhile.
"""

from rdmacoll.horovod.names.handles import finish
from rdmacoll.horovod.names.world import current

from .gradients import Gradients, follow


def join(device: int = -1) -> int:
    """Waits until all ranks have called it; meanwhile this one adds zeros to what the others do.

    Returns the rank that called it last. Others go on with allreduce, by name and in optimizers,
    with this rank's zeros in it; what else they submit fails on them. device: of no meaning here.
    """
    world = current()
    state = world.sets[0]
    assert state.group is not None
    work = state.group.join()
    follow([one for ref in world.closed_with_it if isinstance(one := ref(), Gradients)])
    last = finish(work, lambda work: work.last_joined())
    state.count_anew()
    return int(last)
