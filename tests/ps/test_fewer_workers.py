"""A worker that others wait for is killed: they hear of it, make a smaller group, and go on in step
where they were. Gradients are integers and the rate is 1, so sums are exact.

Floor: tests.
"""

from __future__ import annotations

import pytest
from job_runner import Jobs

PROGRAM = """
import os, signal
import torch
import torch.distributed as dist
import rdmacoll
from rdmacoll import ps
from rdmacoll.ps import row_steps
from torch import nn

STEPS, DIES_AT, SIZE = 8, 3, 256 * 1024 + 5
RANK = int(os.environ["RANK"])
torch.set_num_threads(1)
dist.init_process_group("rdma")

class Parameters:
    def __init__(self):
        self.net = nn.ParameterList([torch.zeros(SIZE)])
        self.optimizer = ps.Optimizer(self.net.parameters(), ps.SGD(lr=1.0), {mode}, "net")
    def step(self):
        self.net[0].grad = torch.full((SIZE,), 6.0 * (RANK + 1))
        self.optimizer.step()
    def value(self):
        return self.net[0].unique().tolist()

class Rows:
    def __init__(self):
        self.bag = ps.Embedding("rows", 2, pace={mode}, optimizer=ps.SGD(lr=1.0))
    def step(self):
        (self.bag(torch.arange(4)).sum() * 6.0 * (RANK + 1)).backward()
        self.bag.wait()
    def value(self):
        return self.bag._kv.row_pull("rows", [0, 1, 2, 3]).unique().tolist()

def of_step(step):
    total = sum(6.0 * (rank + 1) for rank in range(3 if step < DIES_AT else 2))
    return total / (3 if step < DIES_AT else 2) if {mode} == ps.Sync() else total

def die_at_step():
    if RANK == 2 and step == DIES_AT:
        os.kill(os.getpid(), signal.SIGKILL)

def exchanged(*of_rows, how=row_steps.exchanged):
    die_at_step()
    return how(*of_rows)

DIES_WITHIN = {within}
if DIES_WITHIN:
    row_steps.exchanged = exchanged
trains = {what}()
step = 0
while step < STEPS:
    if not DIES_WITHIN:
        die_at_step()
    try:
        trains.step()
    except rdmacoll.DeadRankError as error:
        if not DIES_WITHIN:
            assert error.dead_ranks == (2,) and "rank 2 has made 3, and is gone" in str(error)
        rdmacoll.shrink_group()
        trains = {what}()
        print("two go on", flush=True)
        if {mode} != ps.Sync():  # this step is made
            step += 1
        continue
    step += 1
dist.barrier()
expected = -sum(of_step(step) for step in range(STEPS))
assert trains.value() == [expected], (trains.value(), expected)
print("exact", flush=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("what", "mode", "within"),
    [
        ("Parameters", "ps.Sync()", False),
        ("Parameters", "ps.Stale(0)", False),
        ("Rows", "ps.Sync()", False),
        ("Rows", "ps.Sync()", True),
        ("Rows", "ps.Stale(0)", False),
    ],
)
def test_the_others_go_on(jobs: Jobs, what: str, mode: str, within: bool) -> None:
    """within: the exchange of gradients, which is a collective."""
    text = PROGRAM
    for name, value in (("mode", mode), ("what", what), ("within", str(within))):
        text = text.replace(f"{{{name}}}", value)
    done = jobs.run_script(text, "-np", "3", "--min-np", "2", "--servers", "2")
    said = done.stdout
    assert (done.returncode, said.count("two go on"), said.count("exact")) == (0, 2, 2), (
        said + done.stderr
    )


BACK = """
import os, signal, time
import torch
import torch.distributed as dist
from rdmacoll import elastic, ps
from torch import nn

SLOT, IS_BACK = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"]) > 0
STEPS, DIES_AT = 20, 7
torch.set_num_threads(1)
net = nn.ParameterList([torch.zeros(1000)])

def train(state):
    state.worlds = [*state.worlds, dist.get_world_size()]
    optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), ps.Sync())
    while state.step < STEPS or dist.get_world_size() < 3:
        if SLOT == 2 and not IS_BACK and state.step == DIES_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        net[0].grad = torch.full_like(net[0], 6.0)
        optimizer.step()
        state.step += 1
        state.commit()
        time.sleep(0.02 if dist.get_world_size() < 3 else 0.0)

state = elastic.State(step=0, worlds=[])
elastic.run(train, state)
assert net[0].unique().tolist() == [-6.0 * state.step], (net[0].unique(), state.step)
assert state.worlds == [3, 2, 3], state.worlds
print("exact", flush=True)
"""


def test_the_others_go_on_until_it_is_back(jobs: Jobs) -> None:
    """A step that was not whole is made again, and those that were are not."""
    options = ["-np", "3", "--min-np", "2", "--max-restarts", "1", "--elastic", "--servers", "2"]
    done = jobs.run_script(BACK, *options)
    assert (done.returncode, done.stdout.count("exact")) == (0, 3), done.stdout + done.stderr


WITHOUT_RANK_0 = """
import os, signal
import torch
import torch.distributed as dist
import rdmacoll
from rdmacoll import ps
from torch import nn

torch.set_num_threads(1)
dist.init_process_group("rdma")
net = nn.ParameterList([torch.zeros(1000)])
ps.connect()
dist.barrier()
if dist.get_rank() == 0:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), ps.Sync())
except rdmacoll.DeadRankError as error:
    assert 0 in error.dead_ranks and "rank 0 of the 3 workers of 'model' is gone" in str(error)
rdmacoll.shrink_group()
optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), ps.Sync())
net[0].grad = torch.full_like(net[0], 6.0)
optimizer.step()
assert net[0].unique().tolist() == [-6.0]
print("exact", flush=True)
dist.destroy_process_group()
"""


def test_rank_0_is_gone_before_they_begin(jobs: Jobs) -> None:
    done = jobs.run_script(WITHOUT_RANK_0, "-np", "3", "--min-np", "2", "--servers", "1")
    assert (done.returncode, done.stdout.count("exact")) == (0, 2), done.stdout + done.stderr
