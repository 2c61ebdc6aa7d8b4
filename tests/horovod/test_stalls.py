"""Ranks that wait for what others do not submit, and ranks that are lost.

Floor: tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from job_runner import Jobs

LATE = """
    import time
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    if hvd.rank() == 1:
        time.sleep(2.5)
    print(hvd.allreduce(torch.ones(1), name="loss", op=hvd.Sum).item())
    hvd.barrier()
"""
NEVER = """
    import sys, time
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    if hvd.rank() == 1:
        time.sleep(4)
        sys.exit(0)
    try:
        hvd.allreduce(torch.ones(1), name="loss")
    except hvd.HorovodInternalError as error:
        print("raised:", error)
"""
KILLED = """
    import os, signal
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    model = torch.nn.Linear(4, 2)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(1000):
        if hvd.rank() == 1 and step == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            optimizer.zero_grad()
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            hvd.allreduce(torch.ones(1), name="loss")
        except hvd.HorovodInternalError as error:
            print("raised:", type(error.__cause__).__name__)
            break
"""


LATE_FIRST = """
    import time
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    if hvd.rank() == 0:
        time.sleep(3.5)
    print(hvd.allreduce(torch.ones(1), name="loss", op=hvd.Sum).item())
    hvd.barrier()
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


def test_a_rank_that_waits_says_who_is_late(jobs: Jobs) -> None:
    script = jobs.script(LATE)
    done = jobs.run("-np", "2", jobs.python, script, HOROVOD_STALL_CHECK_TIME_SECONDS="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2.0") == 2
    assert "allreduce.loss is not submitted by rank 1" in done.stderr


def test_one_rank_says_that_the_first_is_late(jobs: Jobs) -> None:
    script = jobs.script(LATE_FIRST)
    done = jobs.run("-np", "4", jobs.python, script, HOROVOD_STALL_CHECK_TIME_SECONDS="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("4.0") == 4
    assert done.stderr.count("for 2 s allreduce.loss is not submitted by rank") == 1, done.stderr


def test_who_waits_for_ever_is_told_after_a_while(jobs: Jobs) -> None:
    script = jobs.script(NEVER)
    done = jobs.run("-np", "2", jobs.python, script, HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="1")
    assert "raised: an operation has waited for 1 s" in done.stdout, done.stderr
    assert "allreduce.loss is not submitted by rank 1" in done.stdout


def test_a_rank_that_is_killed_is_an_error_of_the_others(jobs: Jobs) -> None:
    done = jobs.run("-np", "3", "--min-np", "2", jobs.python, jobs.script(KILLED))
    assert done.stdout.count("raised: ") == 2, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.count("DeadRankError") == 2, done.stdout
