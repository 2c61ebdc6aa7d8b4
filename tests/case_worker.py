"""A worker of such a job: `case_worker.py FILE`. It calls the cases in their order, each with a
KV, and writes into a file how they end. All workers begin each case together.

Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import datetime
import importlib
import json
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist

from rdmacoll import ps

TIMEOUT_S = 30.0


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("rdma", timeout=datetime.timedelta(seconds=TIMEOUT_S))
    file = Path(sys.argv[1])
    sys.path.insert(0, str(file.parent))
    module = importlib.import_module(file.stem)
    ends: dict[str, str] = {}
    for name, case in list(vars(module).items()):
        if not name.startswith("case_"):
            continue
        dist.barrier()
        try:
            case(ps.KV(timeout=TIMEOUT_S))
            ends[name] = ""
        except Exception:
            ends[name] = traceback.format_exc()
        Path(f"ends.{dist.get_rank()}").write_text(json.dumps(ends))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
