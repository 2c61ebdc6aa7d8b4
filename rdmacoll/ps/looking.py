"""`rdmacoll ps status --store`: reads the Board of a job that this process is not of.

Floor: rdmacoll/ps. Thread: the main one.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys

import torch.distributed as dist

from ..servers.command import show
from ..servers.options import NO_RUN_ID, Address
from ..servers.reaching import NoStore, wait_for_store
from ..servers.status import JobStatus
from .board import NotAStore, leave_at_once, reach
from .status import status_of


def look(arguments: argparse.Namespace) -> int:
    """The exit status."""
    store: Address = arguments.store
    try:
        wait_for_store(store, arguments.timeout)
        job = _status_at(store, arguments.rdzv_id, arguments.timeout)
    except (NoStore, NotAStore, LookupError, RuntimeError) as error:
        print(f"rdmacoll ps status: {error} (--store {store})", file=sys.stderr)
        if isinstance(error, NotAStore):
            leave_at_once(1)
        return 1
    show([job], arguments.json)
    return 0


def _status_at(store: Address, run_id: str | None, timeout: float) -> JobStatus:
    """Raises LookupError where the job has no servers, RuntimeError where what is in the Store is
    not to be read."""
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = store.host, str(store.port)
    run_id = run_id or os.environ.get("TORCHELASTIC_RUN_ID", NO_RUN_ID)
    os.environ["TORCHELASTIC_RUN_ID"] = run_id
    board = reach(timeout, timeout)
    # What servers say is signed, and a process has the job's secret once it has a group.
    meets = dist.PrefixStore(f"rdmacoll.ps.looking/{secrets.token_hex(8)}", board.store)
    dist.init_process_group("rdma", store=meets, rank=0, world_size=1)
    try:
        return status_of(board)
    finally:
        dist.destroy_process_group()
