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
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist

from rdmacoll import ps

TIMEOUT_S = 30.0


def run_cases(
    file: Path, rank: int, begin: Callable[[], object], call: Callable[[Callable[..., None]], None]
) -> Iterator[str]:
    """The names of the cases in the file, each once it has ended."""
    sys.path.insert(0, str(file.parent))
    module = importlib.import_module(file.stem)
    ends: dict[str, str] = {}
    for name, case in list(vars(module).items()):
        if not name.startswith("case_"):
            continue
        begin()
        try:
            call(case)
            ends[name] = ""
        except Exception:
            ends[name] = traceback.format_exc()
        Path(f"ends.{rank}").write_text(json.dumps(ends))
        yield name


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("rdma", timeout=datetime.timedelta(seconds=TIMEOUT_S))
    for _ in run_cases(
        Path(sys.argv[1]),
        dist.get_rank(),
        dist.barrier,
        lambda case: case(ps.KV(timeout=TIMEOUT_S)),
    ):
        pass
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
