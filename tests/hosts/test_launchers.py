"""rdmarun and torchrun over several hosts, with ranks that do not use backend "rdma".

Floor: tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hosts.stand import Host, MakeHosts

RDMARUN = [sys.executable, "-m", "rdmacoll.launcher"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
PORT = 29400
LIMIT_S = 120.0

WHERE = """
import os, socket
print(os.environ["RANK"], os.environ["LOCAL_RANK"], socket.gethostname())
"""

SUM_BY_GLOO = """
import socket
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(1)
dist.all_reduce(value)
print(f"{socket.gethostname()}: sum {value.item()}", flush=True)
dist.destroy_process_group()
"""


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(text)
    return str(path)


def test_rdmarun_numbers_the_ranks_host_by_host(make_hosts: MakeHosts, tmp_path: Path) -> None:
    first = make_hosts(3)[0]
    done = first.run(*RDMARUN, "-np", "4", "-H", "nodeA:1,nodeB:2,nodeC:1", script(tmp_path, WHERE))
    assert done.returncode == 0, done.stdout
    for where in ("0 0 nodeA", "1 0 nodeB", "2 1 nodeB", "3 0 nodeC"):
        assert where in done.stdout, done.stdout


def test_rdmarun_ends_all_hosts_where_a_rank_fails(two_hosts: list[Host], tmp_path: Path) -> None:
    fails = "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(9)\ntime.sleep(600)"
    done = two_hosts[0].run(*RDMARUN, "-np", "2", "-H", "nodeA,nodeB", script(tmp_path, fails))
    assert done.returncode == 9, done.stdout
    assert "rank 1" in done.stdout and "nodeB" in done.stdout


def test_torchrun_and_gloo(two_hosts: list[Host], tmp_path: Path) -> None:
    path = script(tmp_path, SUM_BY_GLOO)
    options = ["--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint=nodeA:{PORT}"]
    agents = [
        host.start(
            *TORCHRUN,
            *options,
            "--rdzv-backend=c10d",
            path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for host in two_hosts
    ]
    for host, agent in zip(two_hosts, agents, strict=True):
        said, _ = agent.communicate(timeout=LIMIT_S)
        assert agent.returncode == 0, said
        assert said.count(f"{host.name}: sum 4.0") == 2, said
