"""Where optimizers of ranks meet: each has a group of its own for its gradients, in every world.

It is made when the first gradient is there, and not with the optimizer: in an elastic job one rank
makes its optimizer while the others go on with theirs.
Floor: rdmacoll/horovod/training. Thread: the one that trains.
"""

import gc
import hashlib
import weakref
from collections.abc import Mapping
from typing import Protocol

import torch

from rdmacoll._extension import extension
from rdmacoll.horovod.names.compression import Compressor
from rdmacoll.horovod.names.handles import finish
from rdmacoll.horovod.names.process_sets import ProcessSet, state_of
from rdmacoll.horovod.names.world import current

from .gradients import Gradients


class Meets(Protocol):
    """An optimizer."""

    def meet(self) -> None: ...


_optimizers: list[weakref.ref[Meets]] = []  # in the order in which they were made


def register(optimizer: Meets) -> None:
    _optimizers[:] = [one for one in _optimizers if one() is not None]
    _optimizers.append(weakref.ref(optimizer))


def meet_all() -> None:
    """Every optimizer of this rank has its group. The others do so when they use theirs."""
    gc.collect()  # what is out of use must not wait for others
    for one in list(_optimizers):
        if (optimizer := one()) is not None:
            optimizer.meet()


def signature_of(names: Mapping[torch.Tensor, str], op: int, compression: type[Compressor]) -> str:
    """What optimizers that belong together have in common."""
    parameters = [(name, tuple(p.shape), str(p.dtype)) for p, name in names.items()]
    text = repr((parameters, op, compression.__name__))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def begin(gradients: Gradients, process_set: ProcessSet, signature: str) -> None:
    """Makes the group of these gradients, with the others of this signature.

    Raises HorovodInternalError where a rank is lost, ValueError for a set that is no more.
    """
    world, state = current(), state_of(process_set)
    name = state.next_gradients(signature)
    assert state.group is not None
    all_are_here = state.group.submit(extension().NamedKind.Barrier, name, False, [], [])
    finish(all_are_here, lambda _: None)
    gradients.begin(world.meeting.backend(name, [world.ranks[rank] for rank in state.ranks]))
    world.closed_with_it.append(weakref.ref(gradients))
