"""What the machine itself does just now: the limits that times and bandwidths are read beside.

Both cores of a virtual machine change under you, so these are measured in the same run.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # registers the backend "fake"

from .frame.job import ROOT
from .result import Machine

COPY_BYTES = 64 << 20
COPIES = 5
CALLS = 2000
PROGRAM_TIMEOUT_S = 60
FLAG_SOURCE = Path(__file__).with_name("flag.cc")


def measure_machine(control: dist.ProcessGroup) -> Machine:
    """Called by all ranks; the flag is rank 0's, while the others wait."""
    machine = Machine(
        cores=len(os.sched_getaffinity(0)),
        copy_gb_per_s=_copy_gb_per_s(control),
        torch_call_us=_torch_call_us(dist.new_group(backend="fake")),
        flag_us=flag_us() if dist.get_rank() == ROOT else None,
    )
    dist.barrier(group=control)
    return machine


def _copy_gb_per_s(control: dist.ProcessGroup) -> float:
    """The slowest rank's."""
    source = torch.ones(COPY_BYTES, dtype=torch.uint8)
    destination = torch.zeros_like(source)
    rates = []
    for _ in range(COPIES):
        dist.barrier(group=control)
        began = time.perf_counter()
        destination.copy_(source)
        rates.append(COPY_BYTES / (time.perf_counter() - began) / 1e9)
    slowest = torch.tensor(statistics.median(rates))
    dist.all_reduce(slowest, dist.ReduceOp.MIN, group=control)
    return slowest.item()


def _torch_call_us(group: dist.ProcessGroup) -> float:
    tensor = torch.zeros(1)
    began = time.perf_counter()
    for _ in range(CALLS):
        dist.all_reduce(tensor, group=group)
    return (time.perf_counter() - began) / CALLS * 1e6


def flag_us() -> float | None:
    """None without a C++ compiler, or a second core for it to be seen from."""
    compiler = shutil.which("c++")
    if compiler is None or len(os.sched_getaffinity(0)) < 2:
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "flag"))
        build = [compiler, "-O2", "-std=c++20", str(FLAG_SOURCE), "-o", program]
        subprocess.run(build, check=True, timeout=PROGRAM_TIMEOUT_S)
        run = [program]
        done = subprocess.run(
            run, check=True, timeout=PROGRAM_TIMEOUT_S, capture_output=True, text=True
        )
    return float(done.stdout)
