"""What the engine has for operations by name (torch_ext/order), as types, and nothing else."""

from typing import Protocol

import torch


class NamedTimes(Protocol):
    """When an operation was submitted and so on, by time.monotonic_ns(); 0: not yet.

    What has ended does not change: read that first.
    """

    @property
    def submitted_ns(self) -> int: ...
    @property
    def agreed_ns(self) -> int:
        """When all ranks had, and it began to run."""

    @property
    def ended_ns(self) -> int: ...
    @property
    def has_failed(self) -> bool: ...


class NamedWork(Protocol):
    """An operation that was submitted."""

    def done(self) -> bool: ...
    def wait(self, timeout_s: float = -1.0) -> None:
        """Raises what it ended with. timeout_s < 0: no limit."""

    def outputs(self) -> list[torch.Tensor]: ...
    def rows(self) -> list[int]:
        """Of an all_to_all and an all_gather: how many came from each rank, tensor by tensor."""

    def last_joined(self) -> int:
        """Of a join: the rank that came last."""

    def times(self) -> NamedTimes: ...


class Unsubmitted(Protocol):
    """What some ranks have submitted and others have not; ranks count within the group."""

    @property
    def name(self) -> str: ...
    @property
    def missing(self) -> list[int]: ...


class Late(Protocol):
    """The answer to a rank that asked who is late; `more` names wait besides."""

    @property
    def asked_by(self) -> int: ...
    @property
    def names(self) -> list[Unsubmitted]: ...
    @property
    def more(self) -> int: ...


class NamedGroup(Protocol):
    """Ranks that submit by name, each in an order of its own."""

    def submit(
        self,
        kind: object,
        name: str,
        is_kept: bool,
        inputs: list[torch.Tensor],
        outputs: list[torch.Tensor],
        op: object = ...,
        prescale: float = 1.0,
        postscale: float = 1.0,
        root: int = 0,
        splits: list[int] = ...,
    ) -> NamedWork:
        """Raises ValueError for a name that is in flight."""

    def join(self) -> NamedWork: ...
    def ask_who_is_late(self) -> None:
        """Has the first rank tell all ranks."""

    def take_late(self) -> Late | None:
        """The first answer to any rank since the last time, if one has come."""

    def messages(self) -> int:
        """How many this rank has sent about names."""

    def close(self) -> None: ...
