"""A rank of such a job: `worker.py FILE`. It calls the cases in their order, each between init()
and shutdown(), and writes into a file how they end.

Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

import rdmacoll.horovod as hvd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from case_worker import run_cases


def main() -> None:
    torch.set_num_threads(1)
    for _ in run_cases(Path(sys.argv[1]), int(os.environ["RANK"]), hvd.init, lambda case: case()):
        hvd.barrier()
        hvd.shutdown()


if __name__ == "__main__":
    main()
