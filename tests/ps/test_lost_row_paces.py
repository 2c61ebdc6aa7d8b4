"""Servers and workers that are lost while workers push rows in step. Gradients are integers and the
rate is 1, so a table is minus the sum of what was pushed, or of its means, bit for bit.

Floor: tests.
"""

from __future__ import annotations

import pytest
from job_runner import Jobs
from test_lost_servers import run

# Rank r has two rows in each step, one of which is its own: r and WORLD.
STEPS = """
bag = ps.Embedding("paced", 40, pace={pace}, optimizer=ps.SGD(lr=1.0), timeout={timeout})
SHARE = WORLD if {pace} == ps.Sync() else 1
MINE, ALL = torch.tensor([RANK, WORLD]), torch.arange(WORLD + 1)

def train(steps):
    for step in steps:
        if step == 20:
            {happens}
        (bag(MINE).sum() * float(SHARE * (step % 5 + 1))).backward()
        time.sleep(0.02)
"""


@pytest.mark.parametrize(
    "pace", ["ps.Sync()", pytest.param("ps.Stale(1)", marks=pytest.mark.nightly)]
)
def test_a_server_that_is_killed(jobs: Jobs, pace: str) -> None:
    happens = "lost.kill(1) if RANK == 0 else None"
    text = (
        STEPS.format(pace=pace, timeout=30.0, happens=happens)
        + """
train(range(STEPS))
bag.wait()
dist.barrier()
total = -float(sum(step % 5 + 1 for step in range(STEPS)))
kv.init_rows("paced", 40, optimizer=ps.SGD(lr=1.0))
assert kv.row_pull("paced", ALL[:-1]).unique().tolist() == [total]
assert kv.row_pull("paced", ALL[-1:]).unique().tolist() == [total * WORLD]
print("exact", flush=True)
dist.barrier()
dist.destroy_process_group()
"""
    )
    done = run(jobs, text, "-np", "2", "--servers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exact") == 2
    assert "server 1" in done.stderr


@pytest.mark.parametrize(
    "pace", ["ps.Sync()", pytest.param("ps.Stale(1)", marks=pytest.mark.nightly)]
)
def test_a_worker_that_is_killed(jobs: Jobs, pace: str) -> None:
    """The others name it, and what was pushed is in the table."""
    happens = "RANK < 2 or bag.wait() or os.kill(os.getpid(), signal.SIGKILL)"
    text = (
        STEPS.format(pace=pace, timeout=3.0, happens=happens)
        + """
try:
    train(range(STEPS))
    raise AssertionError("nobody was missed")
except rdmacoll.DeadRankError as error:
    print("missed:", error.dead_ranks, error, flush=True)
lost.say("missed")
lost.wait_for_word("missed", 0, 1)
kv.init_rows("paced", 40, optimizer=ps.SGD(lr=1.0))
total = -float(sum(step % 5 + 1 for step in range(20)))
assert kv.row_pull("paced", [2]).unique().tolist() == [total]
others = kv.row_pull("paced", [0, 1]).unique().tolist()
if SHARE > 1:
    assert others == [total], others
else:
    assert len(others) == 1 and others[0] < total, others
print("exact", flush=True)
lost.say("ended")
lost.wait_for_word("ended", 0, 1)
os._exit(0)
"""
    )
    done = run(jobs, text, "-np", "3", "--min-np", "2", "--servers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exact") == 2
    assert done.stdout.count("missed: (2,)") == 2
    assert done.stdout.count("rank 2 has made 20, and is gone") == 2
