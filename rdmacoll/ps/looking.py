"""`rdmacoll ps status --store`: reads the Board of a job that this process is not of.

Floor: rdmacoll/ps. Thread: the main one.
"""

from __future__ import annotations

import os
import secrets

import torch.distributed as dist

from ..servers.options import NO_RUN_ID, Address
from ..servers.status import JobStatus
from .board import Board
from .status import status_of


def status_at(store: Address, run_id: str | None, timeout: float) -> JobStatus:
    """Raises LookupError where the job has no servers, RuntimeError where the Store, or what is in
    it, is not to be read."""
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = store.host, str(store.port)
    run_id = run_id or os.environ.get("TORCHELASTIC_RUN_ID", NO_RUN_ID)
    os.environ["TORCHELASTIC_RUN_ID"] = run_id
    board = Board(timeout)
    # What servers say is signed, and a process has the job's secret once it has a group.
    meets = dist.PrefixStore(f"rdmacoll.ps.looking/{secrets.token_hex(8)}", board.store)
    dist.init_process_group("rdma", store=meets, rank=0, world_size=1)
    try:
        return status_of(board)
    finally:
        dist.destroy_process_group()
