"""State: what all ranks hold alike and must not lose, with a copy of it as of the last commit."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from .exchange import from_rank

NONE_YET = -1  # commits of a rank that comes later: whatever the others hold is newer


class State:
    """Models, optimizers and whatever else has a state_dict, and plain values, as attributes.

        state = rdmacoll.elastic.State(model=net, optimizer=optimizer, step=0)

    It is for what is the same on all ranks, as under DDP; not for shards. One thread uses it.
    Raises ValueError for a name that begins with "_" or is a method's, AttributeError where an
    attribute is set that was not named when the state was made.
    """

    _names: tuple[str, ...]
    _copy: dict[str, Any]
    _commits: int
    _at_commit: Callable[[], None] | None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **values: Any) -> None:
        for name in values:
            if name.startswith("_") or hasattr(State, name):
                raise ValueError(f"State({name}=...): the name is taken; choose another")
        fields = vars(self)
        fields.update(values)
        fields["_names"] = tuple(values)
        fields["_copy"] = {}
        fields["_commits"] = 0
        fields["_at_commit"] = None

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._names:
            raise AttributeError(
                f"state.{name} is no part of the state and would be lost with this rank; "
                f"name it when the state is made: State({name}=...)"
            )
        super().__setattr__(name, value)

    def commit(self) -> None:
        """From here all go on when a rank is lost; here ranks that have come back are let in.

        All ranks call it, equally often and with the same state; it costs a copy of the state and,
        under rdmarun --elastic, a question to the job's Store and a broadcast of 16 bytes. Ranks
        are let in by leaving train(), which run() calls again.
        """
        self._copy = self._captured()
        self._commits += 1
        if self._at_commit is not None:
            self._at_commit()

    def _begin(self, is_joiner: bool, at_commit: Callable[[], None]) -> None:
        self._copy = self._captured()
        self._commits = NONE_YET if is_joiner else 0
        self._at_commit = at_commit

    def _sync(self) -> None:
        """All ranks go on from the furthest commit, which some may not have reached.

        What fails on the way leaves this rank with the copy that it had.
        """
        everyones = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
        dist.all_gather(everyones, torch.tensor([self._commits]))
        commits = [int(one.item()) for one in everyones]
        if max(commits) == NONE_YET:
            raise RuntimeError(
                "nobody of the group holds the state any more: all who did are lost; start the "
                "job again, from what it has saved"
            )
        self._copy = from_rank(commits.index(max(commits)), self._copy)
        self._commits = max(commits)
        self._restore()

    def _captured(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self._names}
        return {
            name: copy.deepcopy(value.state_dict() if _has_state_dict(value) else value)
            for name, value in values.items()
        }

    def _restore(self) -> None:
        # Of a copy: an optimizer keeps, and changes, the tensors that it is given.
        for name, saved in copy.deepcopy(self._copy).items():
            value = getattr(self, name)
            if _has_state_dict(value):
                value.load_state_dict(saved)
            else:
                setattr(self, name, saved)


def _has_state_dict(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")
