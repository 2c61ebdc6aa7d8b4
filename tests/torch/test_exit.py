"""Leaving the interpreter, with or without destroy_process_group, and forked DataLoader workers."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from scripts import run_ranks
from torch.utils.data import DataLoader, TensorDataset
from world import backend

DAEMONS = """
import threading, time
import torch
from rdmacoll import _C

def call():
    while True:
        _C.flight_dump()

for _ in range(4):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.2)
"""

START = """
import sys, torch, torch.distributed as dist
dist.init_process_group("BACKEND")
rank = dist.get_rank()
tensor = torch.ones(100_000)
dist.all_reduce(tensor)
assert tensor[0].item() == dist.get_world_size()
"""

# What a script does at its end, and the status it should leave with. The barriers let no rank leave
# before the other has begun its receives, which would raise in a group that has lost a rank.
ENDS = {
    "destroy": ("dist.destroy_process_group()", 0),
    "without destroy": ("", 0),
    "status": ("sys.exit(3)", 3),
    "pending": (
        "works = [dist.irecv(torch.ones(5), 1 - rank) for _ in range(3)]\ndist.barrier()",
        0,
    ),
    "pending callbacks": (
        "work = dist.irecv(torch.ones(5), 1 - rank)\n"
        "future = work.get_future().then(lambda f: print('never', flush=True))\ndist.barrier()",
        0,
    ),
    "destroyed by a callback": (
        "works = [dist.all_reduce(torch.ones(5), async_op=True) for _ in range(2)]\n"
        "future = works[1].get_future().then(lambda f: dist.destroy_process_group())\n"
        "del works\n"
        "future.wait()",
        0,
    ),
    "made again after that": (
        "work = dist.all_reduce(torch.ones(5), async_op=True)\n"
        "work.get_future().then(lambda f: dist.destroy_process_group()).wait()\n"
        "del work\n"
        "store = dist.TCPStore('127.0.0.1', int(__import__('os').environ['MASTER_PORT']))\n"
        "again = dist.PrefixStore('again', store)\n"
        "dist.init_process_group('BACKEND', store=again, rank=rank, world_size=2)\n"
        "dist.all_reduce(tensor)\n"
        "dist.destroy_process_group()",
        0,
    ),
}
GLOO_ABORTS = (
    "pending",
    "pending callbacks",
    "destroyed by a callback",
    "made again after that",
)


def script(end: str) -> str:
    return (START + ENDS[end][0]).replace("BACKEND", backend())


@pytest.mark.parametrize("end", ENDS)
def test_status_of_the_interpreter(end: str) -> None:
    if backend() == "gloo" and end in GLOO_ABORTS:
        pytest.skip("gloo: aborts the process, or hangs")
    for rank, finished in enumerate(run_ranks(script(end), 2)):
        assert finished.code == ENDS[end][1], f"rank {rank}:\n{finished.output}"


@distributed(1, 2, 3)
def test_forked_data_loader_workers() -> None:
    rank, world = me()
    data = TensorDataset(torch.arange(64.0))
    for _ in range(2):
        total = torch.zeros(1)
        for (batch,) in DataLoader(data, batch_size=8, num_workers=2):
            step = batch.sum().reshape(1)
            dist.all_reduce(step)
            total += step
        assert total.item() == world * 63 * 32


def test_daemon_threads_that_are_in_the_extension_leave_the_status() -> None:
    """Python unwinds them by force when they come back from it while it finalizes."""
    done = subprocess.run(
        [sys.executable, "-c", DAEMONS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
