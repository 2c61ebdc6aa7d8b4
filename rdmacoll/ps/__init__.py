"""The parameter server: processes that hold tables which the workers of a job push to and pull.

    rdmarun -np 4 --servers 2 train.py

    kv = ps.KV()
    kv.init("weights", torch.zeros(1000, 1000), optimizer=ps.SGD(lr=0.1))
    kv.push("weights", gradient)
    weights = kv.pull("weights")

docs/PARAMETER_SERVER.md says what holds for order, failures and memory.
"""

from ..servers.status import JobStatus, ServerStatus, TableStatus
from .balance import Rebalanced, rebalance
from .base.modes import Async, Stale, Sync
from .base.optimizers import (
    SGD,
    Adagrad,
    Adam,
    AdamW,
    Constant,
    Normal,
    RowwiseAdagrad,
    Uniform,
)
from .base.pending import Pending
from .embedding import Embedding, EmbeddingBag
from .kv import KV
from .optimizer import Optimizer
from .snapshots import restore, snapshot
from .worker import connect, stats

__all__ = [
    "KV",
    "SGD",
    "JobStatus",
    "ServerStatus",
    "TableStatus",
    "Adagrad",
    "Adam",
    "AdamW",
    "Async",
    "Constant",
    "Embedding",
    "EmbeddingBag",
    "Normal",
    "Optimizer",
    "Pending",
    "Rebalanced",
    "RowwiseAdagrad",
    "Stale",
    "Sync",
    "Uniform",
    "connect",
    "rebalance",
    "restore",
    "snapshot",
    "stats",
]
