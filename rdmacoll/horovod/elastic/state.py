"""What a job holds in memory and must not lose: the interface, and plain objects.

Floor: rdmacoll/horovod/elastic. Thread: the one that trains.
"""

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rdmacoll.horovod.names.elastic_job import current_job


class State:
    """bcast_object, get_rank: hvd.broadcast_object and hvd.rank, for who derives from it.

    Who derives from it says what save(), restore() and sync() do.
    """

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int]) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks: list[Callable[[], object]] = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], object]]) -> None:
        """They are called in this order when ranks have changed, before the state is sent."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Ranks have changed."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """From here all go on when a rank is lost; here ranks that have come back are let in.

        All ranks call it, equally often. Raises HostsUpdatedInterrupt, for hvd.elastic.run(), and
        HorovodInternalError where a rank is lost.
        """
        self.save()
        if (job := current_job()) is not None:
            job.commits += 1
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt, on all ranks, if some wait to be let in. All call it."""
        if (job := current_job()) is not None:
            job.look_for_joiners()

    def save(self) -> None:
        """Keeps a copy of the state as it is."""
        raise NotImplementedError

    def restore(self) -> None:
        """The state is as it was when it was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """The state is that of rank 0. All ranks call it."""
        raise NotImplementedError

    def reset(self) -> None:
        """What is to be done when ranks have changed, before callbacks."""


class ObjectState(State):
    """Plain objects, each an attribute, which are copied deeply when they are saved."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(
        self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any
    ) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved_state = copy.deepcopy(kwargs)
        self._set_attributes(kwargs)

    def save(self) -> None:
        self._saved_state = copy.deepcopy(self._attributes())

    def restore(self) -> None:
        self._set_attributes(copy.deepcopy(self._saved_state))

    def sync(self) -> None:
        if self._saved_state:
            self._set_attributes(self._bcast_object(self._attributes()))
            ObjectState.save(self)  # who derives from it saves the rest itself

    def _attributes(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._saved_state}

    def _set_attributes(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)
