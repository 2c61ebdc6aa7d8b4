"""Elastic training over two hosts: one is lost, the others train on, it comes back and trains too.

Floor: tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hosts.stand import Host, Hosts

RDMARUN = [sys.executable, "-m", "rdmacoll.launcher", "--no-tag-output"]
OPTIONS = ["-np", "4", "-H", "nodeA:2,nodeB:2", "--min-np", "2", "--elastic", "--max-restarts", "1"]
LIMIT_S = 120.0
# Trains until a file says that it is enough.
TRAIN = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from rdmacoll import elastic

enough = os.path.join(os.path.dirname(__file__), "enough")

def train(state):
    print(f"world {dist.get_world_size()}", flush=True)
    model = DistributedDataParallel(state.net)
    while not state.done:
        draw = torch.Generator().manual_seed(state.step)
        loss = model(torch.randn(8, 4, generator=draw)).square().mean()
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        state.step += 1
        done = torch.tensor([float(os.path.exists(enough))])
        dist.all_reduce(done, op=dist.ReduceOp.MAX)
        state.done = bool(done.item())
        state.commit()

net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
state = elastic.State(net=net, optimizer=optimizer, step=0, done=False)
elastic.run(train, state)
weights = b"".join(p.detach().numpy().tobytes() for p in net.parameters()).hex()
print(f"ended at {state.step} with {weights}", flush=True)
"""


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with Hosts(2) as hosts:
        yield hosts


@pytest.mark.parametrize(
    ("lose", "mend"), [(Host.kill, Host.boot), (Host.cut, Host.heal)], ids=["killed", "cut"]
)
def test_the_training_goes_on(
    hosts: list[Host],
    tmp_path: Path,
    lose: Callable[[Host], None],
    mend: Callable[[Host], None],
) -> None:
    script = tmp_path / "script.py"
    script.write_text(TRAIN)
    a, b = hosts
    job = a.start(*RDMARUN, *OPTIONS, str(script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said: list[str] = []
    assert job.stdout is not None
    reader = threading.Thread(target=said.extend, args=(job.stdout,), daemon=True)
    reader.start()

    def wait_for(line: str, times: int) -> None:
        deadline = time.monotonic() + LIMIT_S
        while said.count(line) < times:
            assert time.monotonic() < deadline and job.poll() is None, "".join(said)
            time.sleep(0.05)

    try:
        wait_for("world 4\n", 4)
        lose(b)
        wait_for("world 2\n", 2)  # more on the side that was cut off, which nobody hears
        wait_for("rdmarun: starting ranks 2-3 again when nodeB is back (restart 1 of 1)\n", 1)
        mend(b)
        wait_for("world 4\n", 8)
        (tmp_path / "enough").touch()
        assert job.wait(LIMIT_S) == 0
    finally:
        job.kill()
        reader.join(LIMIT_S)
    ends = re.findall(r"^ended at .*", "".join(said), re.MULTILINE)
    assert len(ends) == 4 and len(set(ends)) == 1, "".join(said)
