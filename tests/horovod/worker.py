"""A rank of such a job: `worker.py FILE`. It calls the cases in their order, each between init()
and shutdown(), and writes into a file how they end.

Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path

import torch

import rdmacoll.horovod as hvd


def main() -> None:
    torch.set_num_threads(1)
    file = Path(sys.argv[1])
    sys.path.insert(0, str(file.parent))
    module = importlib.import_module(file.stem)
    ends: dict[str, str] = {}
    for name, case in list(vars(module).items()):
        if not name.startswith("case_"):
            continue
        hvd.init()
        try:
            case()
            ends[name] = ""
        except Exception:
            ends[name] = traceback.format_exc()
        Path(f"ends.{os.environ['RANK']}").write_text(json.dumps(ends))
        hvd.barrier()
        hvd.shutdown()


if __name__ == "__main__":
    main()
