"""Load: which servers have more to do than others, and how that is made even.

Floor: rdmacoll/ps. Thread: any.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.distributed as dist

from ..remote.memory.checks import check_timeout
from .worker import DEFAULT_TIMEOUT_S, worker


@dataclass(frozen=True)
class Rebalanced:
    """What rebalance() did. 1.0 is an even load."""

    before: float  # what the busiest server was asked for, of the mean of all
    after: float  # the same, had the buckets been where they are now
    buckets: int  # that have another primary now


def rebalance(
    over: float = 1.0, timeout: float = DEFAULT_TIMEOUT_S, group: dist.ProcessGroup | None = None
) -> Rebalanced:
    """Makes the servers' loads even, as far as handing buckets over to their backups can.

    It looks for `over` seconds how many bytes are pushed to each bucket, and pulled of it by asking
    its server, by all workers: call it while they work, in one of them. Pushes and pulls go on;
    those of a bucket wait while it is handed over. With one copy of each bucket it changes nothing.
    timeout: of all, in seconds. group, errors: as of ps.connect(); TimeoutError: some buckets may
    still be handed over. Any thread.
    """
    check_timeout(timeout)
    if isinstance(over, bool) or not isinstance(over, int | float):
        raise TypeError(f"over is a {type(over).__name__}; give seconds")
    if not 0 <= over < timeout:
        raise ValueError(f"over={over}; give 0 or more, and less than the timeout of {timeout}")
    return Rebalanced(*worker(timeout, group).client.rebalance(float(over), timeout))
