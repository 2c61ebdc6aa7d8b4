"""A guest: a worker that is no rank of the job, and comes and goes while that runs.

It finds the job by the address of its Store, as a server that was started by hand does.
Floor: rdmacoll/ps. Thread: any.
"""

from __future__ import annotations

import argparse
import secrets
import time

import torch.distributed as dist

from .._agent import own_agent
from ..process_group import create_process_group
from ..servers.options import Address, address
from ..servers.reaching import NoStore, wait_for_store
from .board import Board, NotAStore, Place, reach


def as_address(store: str) -> Address:
    """Raises TypeError, ValueError."""
    if not isinstance(store, str):
        raise TypeError(f"store is a {type(store).__name__}; give a string, as '10.0.0.1:29500'")
    if own_agent() is not None:
        raise ValueError(
            f"store={store!r}: this process is of a job of rdmarun, and so no guest of another "
            "one; leave store out"
        )
    try:
        return address(store)
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"store: {error}") from None


def join(store: Address, rdzv_id: str | None, timeout: float) -> tuple[Board, dist.ProcessGroup]:
    """The Board of a job that has servers, and a group of this process alone by which they are
    reached. Raises TimeoutError; RuntimeError where the job has another id or secret."""
    deadline = time.monotonic() + timeout
    try:
        wait_for_store(store, timeout)
        left = max(deadline - time.monotonic(), 0.0)
        board = reach(timeout, left, Place(store.host, store.port, rdzv_id))
    except (NoStore, NotAStore) as error:
        raise TimeoutError(f"{error} (store={str(store)!r})") from None
    name = f"rdmacoll.ps.guest/{secrets.token_hex(8)}"
    group = create_process_group(dist.PrefixStore(name, board.store), 0, 1, name=name)
    try:
        board.wait_servers(deadline)
    except RuntimeError as error:
        raise RuntimeError(
            f"store={str(store)!r}: the job there has another id or secret than this process. Give "
            "connect() the job's id as rdzv_id, and name the file with the secret of its ranks in "
            "RDMACOLL_SECRET_FILE, or none if they have none. A job of rdmarun that was started "
            f"without such a file takes no guests ({error})"
        ) from None
    return board, group
