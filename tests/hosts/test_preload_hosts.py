"""rdmarun --preload over several hosts: each imports for its own ranks, and all of them meet.

Floor: tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hosts.stand import Host

SUM = """
import socket, sys
assert "torch" in sys.modules
import torch
import torch.distributed as dist
dist.init_process_group("rdma")
value = torch.full((100_000,), dist.get_rank() + 1.0)
dist.all_reduce(value)
print(f"{socket.gethostname()}: sum {value.unique().tolist()}", flush=True)
dist.destroy_process_group()
"""


def test_ranks_that_are_forked_on_two_hosts(two_hosts: list[Host], tmp_path: Path) -> None:
    script, counted = tmp_path / "script.py", tmp_path / "counted.py"
    script.write_text(SUM)
    counted.write_text("import socket; print(f'imported on {socket.gethostname()}')")
    rdmarun = [sys.executable, "-m", "rdmacoll.launcher", "-np", "4", "-H", "nodeA:2,nodeB:2"]
    done = two_hosts[0].run(*rdmarun, "--preload", "torch,counted", str(script))
    assert done.returncode == 0, done.stdout
    for host in "nodeA", "nodeB":
        assert done.stdout.count(f"imported on {host}") == 1, done.stdout
        assert done.stdout.count(f"{host}: sum [10.0]") == 2, done.stdout
