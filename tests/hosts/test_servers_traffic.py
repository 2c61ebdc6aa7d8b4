"""What a worker and a server of the parameter server on two hosts send each other.

Floor: tests.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.stand import INTERFACE, Host, Hosts

RDMACOLL = str(Path(sys.executable).with_name("rdmacoll"))
PORT = 29500
TABLE_BYTES = 16 << 20
ROUNDS = 3
MOST = 1.1  # of the values: heads, answers, and what Ethernet, IP and TCP have around them
END_S = 60.0

WORKER = f"""
import sys
import torch, torch.distributed as dist
from rdmacoll import ps

dist.init_process_group("rdma")
kv = ps.KV(timeout={END_S})
values = torch.ones({TABLE_BYTES} // 4)
kv.init("table", values)
ways = {{"push": lambda: kv.push("table", values).wait(), "pull": lambda: kv.pull("table", values)}}
print("made", flush=True)
for line in sys.stdin:
    for _ in range({ROUNDS}):
        ways[line.strip()]()
    print("done", flush=True)
dist.destroy_process_group()
"""


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with Hosts(2) as hosts:
        yield hosts


def sent_bytes(host: Host) -> int:
    of_interface = host.run("cat", "/proc/net/dev").stdout.split(f"{INTERFACE}:")[1]
    return int(of_interface.split()[8])


def test_is_little_more_than_the_values(hosts: list[Host]) -> None:
    a, b = hosts
    env = {"MASTER_ADDR": a.address, "MASTER_PORT": str(PORT), "RANK": "0", "WORLD_SIZE": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    worker = a.start(sys.executable, "-c", WORKER, env=env, **pipes)
    serve = ["ps", "serve", "--number", "0", "--servers", "1", "--store", f"{a.address}:{PORT}"]
    server = b.start(RDMACOLL, *serve)
    assert worker.stdin is not None and worker.stdout is not None
    try:
        assert worker.stdout.readline() == "made\n"
        for what, sender in (("push", a), ("pull", b), ("push", a), ("pull", b)):
            before = sent_bytes(sender)
            worker.stdin.write(f"{what}\n")
            worker.stdin.flush()
            assert worker.stdout.readline() == "done\n"
            sent = (sent_bytes(sender) - before) / (ROUNDS * TABLE_BYTES)
            assert 1.0 <= sent < MOST, (what, sent)
        worker.stdin.close()
        assert worker.wait(END_S) == 0
    finally:
        worker.kill()
        server.terminate()
        server.wait(END_S)
