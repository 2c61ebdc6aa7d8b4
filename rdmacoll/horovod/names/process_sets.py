"""Process sets: some ranks of the world, with names and an order of their own.

Floor: rdmacoll/horovod/names. Thread: any.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from rdmacoll._extension import extension

from . import world

if TYPE_CHECKING:
    from .world import SetState


class ProcessSet:
    """Some ranks of the world; operations take it as process_set.

    ranks: numbers of the world; their order does not matter
    process_set_id: None until it is added, and after it was removed
    """

    process_set_id: int | None = None
    ranks: list[int] | None

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        if not isinstance(ranks_or_comm, (list, tuple, range, set)):
            raise ValueError(
                f"ProcessSet({type(ranks_or_comm).__name__}): give a list of ranks; ranks need no "
                "MPI here"
            )
        self.ranks = sorted({int(rank) for rank in ranks_or_comm})

    def size(self) -> int:
        """How many ranks are in it."""
        return len(_added(self).ranks)

    def rank(self) -> int:
        """This rank's number in it. Raises ValueError if it is not in it."""
        state = _added(self)
        own = world.rank()
        if own not in state.ranks:
            raise ValueError(f"rank {own} is not in {self}")
        return state.ranks.index(own)

    def included(self) -> bool:
        """Whether this rank is in it."""
        return world.rank() in _added(self).ranks

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"

    __repr__ = __str__


class _Global(ProcessSet):
    """All ranks, whoever they are."""

    process_set_id = 0

    def __init__(self) -> None:
        pass

    @property
    def ranks(self) -> list[int] | None:  # type: ignore[override]
        return list(range(world.size())) if world.is_initialized() else None


global_process_set: ProcessSet = _Global()
"""All ranks: what operations take where no process set is given."""
_added_sets: list[ProcessSet] = []


def _added(process_set: ProcessSet) -> "SetState":
    sets = world.current().sets
    if process_set.process_set_id is None or process_set.process_set_id not in sets:
        raise ValueError(f"{process_set} was not added, or was removed; use hvd.add_process_set()")
    return sets[process_set.process_set_id]


def state_of(process_set: ProcessSet) -> "SetState":
    """For an operation of this rank. Raises ValueError if it is not in the set."""
    state = _added(process_set)
    if state.group is None:
        raise ValueError(
            f"rank {world.rank()} is not in {process_set}; only ranks in it call its operations"
        )
    return state


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Makes a group of these ranks, and returns their set. All ranks of the world call it.

    Raises ValueError for ranks that are none of the world, or that a set has already.
    """
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    current = world.current()
    ranks = added.ranks or []
    if not ranks or ranks[0] < 0 or ranks[-1] >= current.size:
        raise ValueError(f"ranks={ranks}: give ranks from 0 to {current.size - 1}")
    if any(state.ranks == ranks for state in current.sets.values()):
        raise ValueError(f"A process set with ranks {ranks} is there already; use that one")
    text = ",".join(map(str, ranks))
    # Numbers differ between ranks only where their threads add sets in other orders.
    own = torch.tensor([max(current.sets) + 1])
    _agree(f"process_set.add.{text}", own)
    state = current.make_set(ranks, current.new_name(f"set/{text}"))
    number = int(own.item())
    while number in current.sets:
        number += 1
    current.sets[number] = state
    added.process_set_id = number
    _added_sets.append(added)
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends the group of a set. All ranks of the world call it. Whether there was one to end."""
    current = world.current()
    number = process_set.process_set_id
    if number is None or number == 0 or number not in current.sets:
        return False
    text = ",".join(map(str, process_set.ranks or []))
    _agree(f"process_set.remove.{text}", torch.zeros(1))
    state = current.sets.pop(number)
    if state.group is not None:
        state.group.close()
    process_set.process_set_id = None
    _added_sets.remove(process_set)
    return True


def _agree(name: str, value: torch.Tensor) -> None:
    group = world.current().sets[0].group
    assert group is not None
    module: Any = extension()
    group.submit(module.NamedKind.AllReduce, name, False, [], [value], module.NamedOp.Max).wait()


def forget_all() -> None:
    """Their groups are ended."""
    for process_set in _added_sets:
        process_set.process_set_id = None
    _added_sets.clear()
