"""Tables that are dropped: drop_cases.py, and when servers are lost.

Floor: tests.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import drop_cases
import pytest
from case_job import Outcomes, cases_of
from job_runner import Jobs, clean_jobs


@pytest.fixture(scope="module", params=[(1, 1), (2, 3)], ids=["1w1s", "2w3s"])
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, drop_cases, *request.param)


@pytest.mark.parametrize("case", cases_of(drop_cases))
def test_drop(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


WORKER = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import lost, pytest, torch
import torch.distributed as dist
from rdmacoll import ps

torch.set_num_threads(1)
dist.init_process_group("rdma")
kv = ps.KV(timeout=30.0)
SIZE = 8 * 256 * 1024
kv.init("stays", torch.zeros(SIZE))
kv.init("gone", torch.zeros(SIZE))
kv.push("gone", torch.ones(SIZE)).wait()
"""


def run(jobs: Jobs, text: str, *options: str) -> None:
    script = jobs.script(WORKER + textwrap.dedent(text))
    done = jobs.run("-np", "1", "--servers", "2", *options, jobs.python, script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as it should be" in done.stdout


def test_a_server_that_is_started_again_has_it_not(jobs: Jobs) -> None:
    text = """
        before = lost.server(1)
        kv.drop("gone")
        lost.kill(1)
        until = time.monotonic() + 30.0
        while sum(one.buckets for one in ps.stats().servers if one.pid == before) > 0 or \\
              ps.stats().servers[1].pid == before or ps.stats().servers[0].alone > 0:
            assert time.monotonic() < until, ps.stats()
            time.sleep(0.1)
        ps.rebalance(over=0.1)
        for _ in range(2):
            with pytest.raises(ValueError, match="was dropped"):
                kv.push("gone", torch.ones(SIZE)).wait()
            kv.push("stays", torch.ones(SIZE)).wait()
        assert kv.pull("stays").unique().tolist() == [2.0]
        kv.drop("stays")
        print("as it should be")
    """
    run(jobs, text, "--server-restarts", "1")


def test_a_server_that_is_stopped_is_not_waited_for(jobs: Jobs) -> None:
    """It frees the table when it goes on."""
    text = """
        import os, signal
        pid = lost.server(1)
        os.kill(pid, signal.SIGSTOP)
        kv.drop("gone")
        os.kill(pid, signal.SIGCONT)
        until = time.monotonic() + 30.0
        while ps.stats().servers[1].tables != 1:
            assert time.monotonic() < until, ps.stats()
            time.sleep(0.1)
        kv.push("stays", torch.ones(SIZE)).wait()
        assert kv.pull("stays").unique().tolist() == [1.0]
        print("as it should be")
    """
    run(jobs, text)
