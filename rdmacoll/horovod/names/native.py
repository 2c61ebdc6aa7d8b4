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
    def waiting(self) -> list[tuple[str, list[int]]]:
        """On the first rank: names that some have submitted, and who has not."""

    def messages(self) -> int:
        """How many this rank has sent about names."""

    def close(self) -> None: ...
