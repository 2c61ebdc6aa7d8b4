"""A server of rdmarun --servers in a group of itself alone, whose memory the ranks read and write.

It is of the job by the secret that its agent tells it, and by nothing else. What is tested without
torch is in tests/launcher/test_servers.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from world import backend

LIMIT_S = 120
SERVER = """
import os, signal, torch, torch.distributed as dist
from rdmacoll import remote
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
number = int(os.environ["RDMACOLL_SERVER"])
port = int(os.environ["MASTER_PORT"])
store = dist.TCPStore(os.environ["MASTER_ADDR"], port, is_master=False)
own = dist.PrefixStore(f"server{number}", store)
dist.init_process_group("rdma", rank=0, world_size=1, store=own)
table = remote.empty(1000, access="rw")
table.copy_(torch.arange(1000) + number)
exposure = remote.expose(table, "table", access="rw")
store.set(f"address{number}", remote.address())
signal.sigwait({signal.SIGTERM})
print("the ranks wrote", table[:2].tolist(), flush=True)
dist.destroy_process_group()
"""
RANK = """
import os, torch, torch.distributed as dist
from rdmacoll import remote
dist.init_process_group("rdma")
rank = dist.get_rank()
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
for number in range(int(os.environ["RDMACOLL_SERVERS"])):
    there = remote.open("table", at=store.get(f"address{number}").decode())
    assert (there.read()[2:] == torch.arange(2, 1000) + number).all()
    there[rank : rank + 1].write(torch.full((1,), 7.0 + rank), notify=rank + 1)
dist.barrier()
assert not store.check(["rdmacoll/secret"])  # where others draw one
print("read and written", flush=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "hosts", ["localhost:2", "localhost:1,127.0.0.1:1"], ids=["one host", "two hosts"]
)
def test_ranks_use_the_memory_of_servers(tmp_path: Path, hosts: str) -> None:
    if backend() != "rdma":
        pytest.skip("servers are of the backend rdma")
    launcher_tests = Path(__file__).parents[1] / "launcher"
    shutil.copy(launcher_tests / "server_stand_in.py", tmp_path / "sitecustomize.py")
    (tmp_path / "server.py").write_text(SERVER)
    rdmarun = Path(sys.executable).with_name("rdmarun")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    options = ["-np", "2", "-H", hosts, "--servers", "2"]
    done = subprocess.run(
        [str(rdmarun), *options, sys.executable, "-c", RANK],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [f"[{rank}]: read and written" for rank in range(2)]
    said += [f"[server {server}]: the ranks wrote [7.0, 8.0]" for server in range(2)]
    assert sorted(done.stdout.splitlines()) == said
    assert "no secret" not in done.stderr
    assert "is no setting of rdmacoll" not in done.stderr
