"""Servers that join a job while workers push and pull. Values are integers and tables without an
optimizer add up what is pushed, so they are known bit for bit.

Floor: tests.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from by_hand import ByHand, Process, StoreOfTest
from job_runner import Jobs, wait_for

BUCKETS = 1024

# A guest that pushes until a file is there, and says what servers do; or one that comes then.
WORKER = """
import dataclasses, json, os, sys
from pathlib import Path
import torch
from rdmacoll import ps

torch.set_num_threads(1)
ps.connect(store=sys.argv[1])
kv = ps.KV(timeout=60.0)
SIZE = 40 * 256 * 1024
IDS = torch.arange(-500, 500) * 12_345
kv.init("dense", torch.zeros(SIZE))
kv.init_rows("rows", dim=16)

def check(pushes):
    assert kv.pull("dense").unique().tolist() == [pushes]
    assert kv.row_pull("rows", IDS).unique().tolist() == [pushes]

if os.path.exists("pushed"):
    check(int(Path("pushed").read_text()))
else:
    pushes = 0
    while not os.path.exists("enough"):
        pushed = kv.push("dense", torch.ones(SIZE)), kv.row_push("rows", IDS, torch.ones(1000, 16))
        pushes += 1
        if pushes % 3 == 0:
            kv.wait(*pushed)
            check(pushes)
            said = json.dumps([dataclasses.asdict(one) for one in ps.stats().servers])
            Path("servers.new").write_text(said)
            Path("servers.new").rename("servers")
    kv.wait(*pushed)
    check(pushes)
    Path("pushed").write_text(str(pushes))
print("exact", flush=True)
"""


class Job:
    def __init__(self, jobs: Jobs, by_hand: ByHand) -> None:
        self._jobs, self._by_hand = jobs, by_hand

    def start_worker(self, name: str = "worker") -> Process:
        script = self._jobs.script(WORKER, "worker.py")
        return Process(self._jobs, name, [self._jobs.python, script, self._by_hand.store])

    def join(self, *options: str, **env: str) -> Process:
        command = ["ps", "serve", "--join", "--store", self._by_hand.store, *options]
        server = self._by_hand.rdmacoll(*command, **env)
        server.wait_for_word("has joined, and serves")
        return server

    def servers(self) -> list[dict[str, Any]]:
        """As the worker has heard of them last."""
        file = self._jobs.folder / "servers"
        servers: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
        return servers

    def wait_for_shares(self, serving: int) -> None:
        """Until each of so many has about as much as the others, twice."""
        fair = BUCKETS // serving

        def have_shares() -> bool:
            buckets = [one["buckets"] for one in self.servers() if one["state"] == "serves"]
            return len(buckets) == serving and min(buckets) > 0.8 * fair and self.is_kept_twice()

        wait_for(have_shares, f"{serving} servers to have their shares")

    def is_kept_twice(self, but: int | None = None) -> bool:
        """but: by others than a server that was lost, which they may not have heard of yet."""
        servers = [one for one in self.servers() if one["state"] == "serves"]
        servers = [one for one in servers if one["number"] != but]
        has_all = sum(one["buckets"] for one in servers) == BUCKETS
        return has_all and sum(one["alone"] for one in servers) == 0

    def have_enough(self, *workers: Process) -> None:
        (self._jobs.folder / "enough").touch()
        for worker in workers:
            status, said = worker.end()
            assert status == 0 and "exact" in said, said


@pytest.fixture
def job(jobs: Jobs) -> Iterator[tuple[Job, ByHand]]:
    store = StoreOfTest()
    by_hand = ByHand(jobs, store.port)
    yield Job(jobs, by_hand), by_hand
    jobs.kill_all()
    store.close()


@pytest.mark.parametrize(("replicas", "most"), [("2", 3), ("1", 2)])
def test_they_get_their_shares(job: tuple[Job, ByHand], replicas: str, most: int) -> None:
    of, by_hand = job
    by_hand.serving(0, 1, "--replicas", replicas)
    worker = of.start_worker()
    for servers in range(2, most + 1):
        of.join()
        of.wait_for_shares(servers)
    of.have_enough(worker)


def test_those_before_may_be_lost_then(job: tuple[Job, ByHand]) -> None:
    """One after the other. A worker that comes later finds those that are there."""
    of, by_hand = job
    before = [by_hand.start(number, 2) for number in range(2)]
    worker = of.start_worker()
    of.join()
    of.wait_for_shares(3)
    os.kill(before[0].pid, signal.SIGKILL)
    wait_for(lambda: of.is_kept_twice(but=0), "all to be kept twice")
    os.kill(before[1].pid, signal.SIGKILL)
    of.have_enough(worker)
    of.have_enough(of.start_worker("later"))


@pytest.mark.parametrize(
    "method",
    [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.nightly)],
    ids=["killed", "stopped"],
)
def test_one_that_is_lost_while_it_gets_its_share(
    job: tuple[Job, ByHand], method: signal.Signals
) -> None:
    of, by_hand = job
    for number in range(2):
        by_hand.start(number, 2)
    worker = of.start_worker()
    joined = of.join()
    wait_for(lambda: any(one["tables"] > 0 for one in of.servers()[2:]), "a part of a table")
    os.kill(joined.pid, method)
    wait_for(lambda: of.is_kept_twice(but=2), "all to be kept twice")
    of.have_enough(worker)


def test_one_without_room_says_so(job: tuple[Job, ByHand]) -> None:
    of, by_hand = job
    for number in range(2):
        by_hand.start(number, 2)
    worker = of.start_worker()
    joined = of.join("--memory", "4M")  # of 40: it has room for some of the shards
    wait_for(lambda: any(one["without_room"] for one in of.servers()[2:]), "what has no room")
    joined.wait_for_word("server 2 has no room for parts of tables")
    said = by_hand.rdmacoll("ps", "status", "--store", by_hand.store).end()[1]
    assert "server 2 has no room for" in said and "--memory" in said, said
    of.have_enough(worker)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--join", "--number", "2"], "--join stands for --number, --servers and --replicas"),
        (["--join", "--replicas", "1"], "--join stands for --number, --servers and --replicas"),
        (["--number", "2"], "which server is it? Give --number K and --servers N, or --join"),
        ([], "which server is it? Give --number K and --servers N, or --join"),
    ],
)
def test_wrong_options(jobs: Jobs, options: list[str], says: str) -> None:
    status, said = ByHand(jobs, 1).rdmacoll("ps", "serve", *options, "--store", "a:1").end()
    assert status == 2 and says in said and "Traceback" not in said, said


@pytest.mark.nightly
def test_a_job_of_rdmarun(jobs: Jobs, tmp_path: Path) -> None:
    """With a secret in a file, which the server that joins has, too."""
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    text = """
        import time
        from pathlib import Path
        import torch, torch.distributed as dist
        from rdmacoll import ps
        dist.init_process_group("rdma")
        kv = ps.KV(timeout=60.0)
        kv.init("table", torch.zeros(9_000_000))
        Path("store.new").write_text(ps.stats().store)
        Path("store.new").rename("store")
        pushes = 0
        until = time.monotonic() + 60
        while len(ps.stats().servers) < 2 or min(one.buckets for one in ps.stats().servers) < 400:
            assert time.monotonic() < until, ps.stats()
            kv.push("table", torch.ones(9_000_000)).wait()
            pushes += 1
        assert kv.pull("table").unique().tolist() == [pushes]
        print("exact", flush=True)
        dist.destroy_process_group()
    """
    env = {"RDMACOLL_SECRET_FILE": str(secret)}
    script = jobs.script(text)
    command = [*jobs.rdmarun, "-np", "1", "--servers", "1", jobs.python, script]
    ranks = Process(jobs, "ranks", command, **env)
    wait_for((jobs.folder / "store").exists, "the Store's address")
    port = int((jobs.folder / "store").read_text().rpartition(":")[2])
    joined = Job(jobs, ByHand(jobs, port)).join(**env)
    status, said = ranks.end()
    assert status == 0 and "exact" in said, said
    assert joined.end()[0] == 0
