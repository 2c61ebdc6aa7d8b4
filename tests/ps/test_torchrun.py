"""Servers by hand beside ranks of torchrun, which are lost while workers push.

Floor: tests.
"""

from __future__ import annotations

import textwrap

import pytest
from by_hand import ByHand, free_port
from job_runner import Jobs
from test_lost_servers import KILLED, PUSHES, WORKER

BACK = """
def is_back():
    found = ps.stats().servers[1]
    return found.state == "serves" and found.restarts == 1

def everything_is_kept_twice():
    return all(one.alone == 0 and one.state == "serves" for one in ps.stats().servers)

def until(condition):
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline, ps.stats()
        time.sleep(0.1)
"""


@pytest.mark.nightly
def test_a_server_that_is_killed(jobs: Jobs) -> None:
    """The servers that are left end with the ranks."""
    by_hand = ByHand(jobs, free_port())
    ranks = by_hand.torchrun(2, WORKER + PUSHES.format(happens=KILLED))
    servers = [by_hand.start(number, 2) for number in range(2)]
    status, said = ranks.end()
    assert status == 0 and said.count("exact") == 2, said + servers[0].said()
    status, said = servers[0].end()
    assert status == 0, said
    assert "server 1 does not answer" not in said.partition("serves")[0]
    assert "rdmacoll.ps: server 0 ends: the job's Store is gone: the job has ended" in said
    assert servers[1].end()[0] == -9


def test_a_server_that_is_started_again(jobs: Jobs) -> None:
    by_hand = ByHand(jobs, free_port())
    happens = "lost.kill(1); until(is_back); until(everything_is_kept_twice); lost.kill(0)"
    ranks = by_hand.torchrun(2, WORKER + BACK + PUSHES.format(happens=happens))
    servers = [by_hand.start(number, 2) for number in range(2)]
    assert servers[1].end()[0] == -9
    again = by_hand.start(1, 2)
    status, said = ranks.end()
    assert status == 0 and said.count("exact") == 2, said + again.said()
    assert again.end()[0] == 0


def test_a_job_without_servers(jobs: Jobs) -> None:
    text = """
        import torch.distributed as dist
        from rdmacoll import ps

        dist.init_process_group("rdma")
        try:
            ps.connect(timeout=0.5)
        except TimeoutError as error:
            print("waited:", error)
        dist.destroy_process_group()
    """
    status, said = ByHand(jobs, free_port()).torchrun(1, textwrap.dedent(text)).end()
    assert status == 0, said
    assert "waited: no server of this job has started in time" in said
