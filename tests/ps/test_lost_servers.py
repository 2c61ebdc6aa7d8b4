"""Servers and workers that are lost while workers push. Gradients are integers and the rate is 1,
so a table is minus the sum of what was pushed, bit for bit.

Floor: tests.
"""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest
from job_runner import Jobs

# A worker's program up to what a test adds. Each pushes STEPS times.
WORKER = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import lost
import torch
import torch.distributed as dist
import rdmacoll
from rdmacoll import ps, remote

RANK, WORLD, STEPS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 60
SIZE = 3 * 256 * 1024 + 5
IDS = torch.arange(-50, 50)
torch.set_num_threads(1)
dist.init_process_group("rdma")
kv = ps.KV(timeout=30.0)
kv.init("dense", torch.zeros(SIZE), optimizer=ps.SGD(lr=1.0))
kv.init_rows("rows", dim=40, optimizer=ps.SGD(lr=1.0))

def push_rows(step):
    return kv.row_push("rows", IDS, torch.full((100, 40), float(step % 5 + RANK)))

def push(step):
    kv.push("dense", torch.full((SIZE,), float(step % 7 + RANK)))
    return push_rows(step)

def find_lost(*calls):
    for call in calls:
        began = time.monotonic()
        try:
            call()
            raise AssertionError("a killed server has answered")
        except remote.PeerError as error:
            assert time.monotonic() - began < 20
            print("lost:", error)

def check(steps, workers):
    pushed = [(step, worker) for step in range(steps) for worker in workers]
    dense = -float(sum(step % 7 + worker for step, worker in pushed))
    rows = -float(sum(step % 5 + worker for step, worker in pushed))
    found = kv.pull("dense"), kv.row_pull("rows", IDS)
    assert found[0].unique().tolist() == [dense], (found[0].unique(), dense)
    assert found[1].unique().tolist() == [rows], (found[1].unique(), rows)
"""

PUSHES = """
kept = []
for step in range(STEPS):
    if RANK == 0 and step == 20:
        {happens}
    kept.append(push(step))
kv.wait(*kept)
lost.say("pushed")
lost.wait_for_word("pushed", *range(WORLD))
check(STEPS, range(WORLD))
print("exact", flush=True)
lost.say("checked")
lost.wait_for_word("checked", *range(WORLD))
dist.destroy_process_group()
"""


def run(jobs: Jobs, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return jobs.run(*options, jobs.python, jobs.script(WORKER + textwrap.dedent(text)))


KILLED = "lost.kill(1)"
STOPPED = "threading.Thread(target=lost.stop_for, args=(2.0, 1)).start()"


@pytest.mark.parametrize(
    ("happens", "options"),
    [
        (KILLED, []),
        pytest.param(KILLED, ["--server-restarts", "1"], marks=pytest.mark.nightly),
        (STOPPED, []),
    ],
    ids=["killed", "killed and started again", "stopped for 2 s"],
)
def test_no_push_is_lost_or_done_twice(jobs: Jobs, happens: str, options: list[str]) -> None:
    done = run(jobs, PUSHES.format(happens=happens), "-np", "2", "--servers", "2", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exact") == 2
    assert ("server 1" in done.stderr) == (happens == KILLED)


@pytest.mark.parametrize(
    ("mode", "workers"),
    [("ps.Sync()", "WORLD"), pytest.param("ps.Stale(1)", "1", marks=pytest.mark.nightly)],
    ids=["sync", "stale"],
)
def test_workers_that_go_in_step(jobs: Jobs, mode: str, workers: str) -> None:
    text = f"""
        net = torch.nn.ParameterList([torch.zeros(SIZE)])
        optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), {mode}, timeout=30.0)
        for step in range(STEPS):
            if RANK == 0 and step == 20:
                lost.kill(1)
            net[0].grad = torch.full((SIZE,), float(2 * (step % 7 + RANK)))
            optimizer.step()
            time.sleep(0.05)
        lost.say("pushed")
        lost.wait_for_word("pushed", *range(WORLD))
        found = torch.empty(SIZE)
        optimizer._kv._pull_step("model/0", found, STEPS).wait()
        total = -float(sum(2 * (step % 7 + rank) for step in range(STEPS) for rank in range(WORLD)))
        assert found.unique().tolist() == [total / {workers}], (found.unique(), total)
        print("exact", flush=True)
        lost.say("checked")
        lost.wait_for_word("checked", *range(WORLD))
        dist.destroy_process_group()
    """
    done = run(jobs, text, "-np", "2", "--servers", "2", "--server-restarts", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exact") == 2
    assert "server 1" in done.stderr


def test_the_only_server(jobs: Jobs) -> None:
    """It is waited for as long as a call may take, and named once it is gone."""
    text = """
        push(0).wait()
        impatient = ps.KV(timeout=0.5)
        impatient.init("dense", torch.zeros(SIZE), optimizer=ps.SGD(lr=1.0))
        pid = lost.server(0)
        os.kill(pid, signal.SIGSTOP)
        for call in (lambda: impatient.pull("dense"), lambda: push_rows(1).wait(timeout=0.5)):
            try:
                call()
                raise AssertionError("a stopped server has answered")
            except TimeoutError as error:
                print("waited:", error)
        os.kill(pid, signal.SIGCONT)
        kv.push("dense", torch.full((SIZE,), 1.0))
        check(2, [0])
        pending = push(2)
        os.kill(pid, signal.SIGKILL)
        find_lost(
            lambda: kv.pull("dense"), lambda: push(3).wait(), lambda: kv.row_pull("rows", [1])
        )
        print("through")
        sys.stdout.flush()
        os._exit(0)
    """
    done = run(jobs, text, "-np", "1", "--servers", "1")
    assert done.returncode == 0 and "through" in done.stdout, done.stdout + done.stderr
    said = done.stdout
    assert said.count("waited: ") == 2 and said.count("the servers have not answered in time") == 2
    assert said.count("lost: ") == 3, said
    assert said.count("server 0 has ended, and no other one has what it had") == 3, said


def test_two_of_three_servers_at_once(jobs: Jobs) -> None:
    """What both had is named as lost: nobody else says in the map that they are gone."""
    text = """
        push(0).wait()
        for number in 0, 1:
            lost.kill(number)
        find_lost(lambda: kv.row_pull("rows", IDS), lambda: push_rows(1).wait())
        sys.stdout.flush()
        os._exit(0)
    """
    done = run(jobs, text, "-np", "1", "--servers", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("and so has the other one that had what it had") == 2, done.stdout


def test_ctrl_c_while_a_successor_is_looked_for(jobs: Jobs) -> None:
    """The map is asked for every 2 ms then, so the signal arrives in Python most likely."""
    text = """
        push(0).wait()
        successor = lost.server(1)
        os.kill(successor, signal.SIGSTOP)
        lost.kill(0)
        for call in (lambda: kv.pull("dense"), lambda: push(1).wait(), lambda: push(2).wait()):
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            began = time.monotonic()
            try:
                call()
                raise AssertionError("a stopped server has answered")
            except KeyboardInterrupt:
                assert time.monotonic() - began < 10
                print("interrupted")
        os.kill(successor, signal.SIGCONT)
        sys.stdout.flush()
        os._exit(0)
    """
    done = run(jobs, text, "-np", "1", "--servers", "2")
    assert done.returncode == 0 and done.stdout.count("interrupted") == 3, done.stdout + done.stderr


def test_a_worker_that_is_killed_while_it_pushes(jobs: Jobs) -> None:
    """What it had pushed is there whole or not at all, and the others go on."""
    text = """
        kv.init("one shard", torch.zeros(1000), optimizer=ps.SGD(lr=1.0))
        if RANK == 2:
            kv.push("one shard", torch.ones(1000)).wait()
            lost.say("begun")
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
            while True:
                kv.push("one shard", torch.ones(1000))
        lost.wait_for_word("begun", 2)
        kept = [push(step) for step in range(STEPS)]
        kv.wait(*kept)
        lost.say("pushed")
        lost.wait_for_word("pushed", 0, 1)
        check(STEPS, [0, 1])
        before = kv.pull("one shard").unique().tolist()
        assert len(before) == 1 and before[0] <= -1, before
        kv.push("one shard", torch.ones(1000)).wait()
        after = kv.pull("one shard").unique().tolist()
        assert len(after) == 1 and after[0] <= before[0] - 1, (before, after)
        print("exact", flush=True)
        lost.say("ended")
        lost.wait_for_word("ended", 0, 1)
        os._exit(0)
    """
    done = run(jobs, text, "-np", "3", "--min-np", "2", "--servers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exact") == 2
    assert "rank 2" in done.stderr and "server" not in done.stderr
