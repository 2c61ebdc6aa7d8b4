"""`rdmacoll debug dump` on one host tells what the ranks on all hosts of a job are doing.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.processes import processes_in
from hosts.stand import Host, Hosts

RDMARUN = [sys.executable, "-m", "rdmacoll.launcher", "--no-tag-output"]
DUMP = [sys.executable, "-m", "rdmacoll", "debug", "dump"]
LIMIT_S = 100.0
# Rank 2 does not call the second operation.
HANGS = """
import sys, time
import torch
import torch.distributed as dist
dist.init_process_group("rdma")
dist.all_reduce(torch.ones(1))
print("up", flush=True)
if dist.get_rank() != 2:
    dist.all_reduce(torch.ones(4))
time.sleep(600)
"""


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with Hosts(3) as hosts:
        yield hosts


def test_one_host_is_asked_of_all(hosts: list[Host], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(HANGS)
    a, b, c = hosts
    job = a.start(
        *RDMARUN, "-np", "3", "-H", "nodeA,nodeB,nodeC", "--min-np", "1", str(script),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    said: list[str] = []
    assert job.stdout is not None
    reader = threading.Thread(target=said.extend, args=(job.stdout,), daemon=True)
    reader.start()
    try:
        deadline = time.monotonic() + LIMIT_S
        while said.count("up\n") < 3:
            assert time.monotonic() < deadline and job.poll() is None, said
            time.sleep(0.05)
        for host in (a, c):  # where agent 0 is, and elsewhere
            done = host.run(*DUMP, timeout_s=LIMIT_S)
            assert done.returncode == 0, done.stdout
            assert "MISSING: rank 2 has not called #2" in done.stdout, done.stdout
            assert all(f" {one.name} " in done.stdout for one in hosts), done.stdout
        (rank,) = [pid for pid in processes_in(b.keeper.network) if is_rank(pid, script)]
        os.kill(rank, signal.SIGSTOP)
        done = a.run(*DUMP, "--seconds", "1", timeout_s=LIMIT_S)
        assert done.returncode == 1
        assert f"rank 1 (pid {rank}) on nodeB did not answer (it is stopped)" in done.stdout
        b.kill()
        deadline = time.monotonic() + LIMIT_S
        while not any("is lost" in line for line in said):
            assert time.monotonic() < deadline, said
            time.sleep(0.05)
        done = a.run(*DUMP, timeout_s=LIMIT_S)
        assert done.returncode == 1
        assert "host nodeB does not answer" in done.stdout
    finally:
        job.terminate()
        job.wait(LIMIT_S)


def is_rank(pid: int, script: Path) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return len(words) > 1 and words[1] == str(script).encode()
