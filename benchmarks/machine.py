"""What the machine itself does just now: the figures that latencies and bandwidths are read beside.

Both cores of a virtual machine change under you, so these are measured in the same run.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

COPY_BYTES = 64 << 20
FLAG_SOURCE = Path(__file__).with_name("flag.cc")


def copy_gb_per_s(control: dist.ProcessGroup) -> float:
    """Bytes copied by each rank while all copy at once; the slowest rank's."""
    source, destination = torch.ones(COPY_BYTES, dtype=torch.uint8), torch.empty(COPY_BYTES).byte()
    rates = []
    for _ in range(5):
        dist.barrier(group=control)
        began = time.perf_counter()
        destination.copy_(source)
        rates.append(COPY_BYTES / (time.perf_counter() - began) / 1e9)
    slowest = torch.tensor(statistics.median(rates))
    dist.all_reduce(slowest, dist.ReduceOp.MIN, group=control)
    return slowest.item()


def call_us(group: dist.ProcessGroup) -> float:
    """dist.all_reduce on torch's backend that does nothing."""
    tensor, count = torch.zeros(1), 2000
    began = time.perf_counter()
    for _ in range(count):
        dist.all_reduce(tensor, group=group)
    return (time.perf_counter() - began) / count * 1e6


def flag_us() -> float | None:
    """One way of a flag between two processes; none without a C++ compiler."""
    compiler = shutil.which("c++")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "flag"))
        subprocess.run([compiler, "-O2", "-std=c++20", str(FLAG_SOURCE), "-o", program], check=True)
        return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
