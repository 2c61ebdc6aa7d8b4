"""A worker of the fault table. It does one thing over and over. Meanwhile a server is lost, at a
moment that is drawn, another one every day in CI. Then it does everything once, and all sums are
audited.

    fault_worker.py WAY WHILE

Gradients are integers and the rate is 1, so a table is minus the sum of what was pushed, bit for
bit. Floor: tests. Thread: the main one; a server is lost in one of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import lost
import torch
import torch.distributed as dist

from rdmacoll import ps, remote

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SERVERS = int(os.environ["RDMACOLL_SERVERS"])
LIMIT_S = 30.0
SIZE = 2 * 256 * 1024 + 5
DIM = 8
IDS = torch.arange(-40, 40)
STEPS = 20  # of an optimizer
STOPPED_S = 2.0


class Worker:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.kv = ps.KV(timeout=LIMIT_S)
        self.kv.init("dense", torch.zeros(SIZE), optimizer=ps.SGD(lr=1.0))
        self.kv.init_rows("rows", dim=DIM, optimizer=ps.SGD(lr=1.0))
        self.read = self.kv.empty(SIZE)  # by servers
        self.counts = {"dense": 0, "rows": 0, "made": 0, "saved": 0}

    # --- what a server is lost meanwhile --------------------------------------------------------

    def push(self) -> None:
        self.read.fill_(1.0)
        self.kv.push("dense", self.read).wait()
        self.read.fill_(torch.nan)  # which is nothing to servers any more
        self.counts["dense"] += 1

    def push_rows(self) -> None:
        self.kv.row_push("rows", IDS, torch.ones(len(IDS), DIM)).wait()
        self.counts["rows"] += 1

    def pull(self) -> None:
        self.check_pulled(self.kv.pull("dense"), self.counts["dense"])

    def pull_rows(self) -> None:
        self.check_pulled(self.kv.row_pull("rows", IDS), self.counts["rows"])

    def check_pulled(self, found: torch.Tensor, acknowledged: int) -> None:
        assert -found.max().item() >= acknowledged, (found.max(), acknowledged)

    def make(self) -> None:
        name = f"made {self.counts['made']}"
        self.kv.init(name, torch.zeros(1000), optimizer=ps.SGD(lr=1.0))
        self.kv.push(name, torch.ones(1000)).wait()
        self.counts["made"] += 1

    def save(self) -> None:
        if RANK != 0:
            return self.push()
        ps.snapshot(f"saved {self.counts['saved']}", ["dense", "rows"], alone=True, timeout=LIMIT_S)
        self.counts["saved"] += 1

    def hand_over(self) -> None:
        if RANK != 0:
            return self.push_rows()
        with contextlib.suppress(remote.PeerError):  # of the server that is lost
            ps.rebalance(over=0.05, timeout=LIMIT_S)

    # --- losing ----------------------------------------------------------------------------------

    def lose(self, way: str) -> None:
        """Rank 0's. The others hear of it by a file."""
        victims = self.random.sample(range(SERVERS), 2)
        time.sleep(self.random.uniform(0, 0.2))
        if way == "killed":
            lost.kill(victims[0])
        elif way == "stopped for a while":
            lost.stop_for(STOPPED_S, victims[0])
        elif way == "stopped for good":
            os.kill(lost.server(victims[0]), signal.SIGSTOP)
            time.sleep(STOPPED_S)
        elif way == "killed one after the other":
            for victim in victims:
                lost.kill(victim)
                self.wait_until_whole(victim)
        lost.say("lost")

    def wait_until_whole(self, victim: int) -> None:
        deadline = time.monotonic() + LIMIT_S
        while True:
            others = [one for one in ps.stats(LIMIT_S).servers if one.number != victim]
            running = [one for one in others if one.state == "serves"]
            is_whole = sum(one.buckets for one in running) == 1024
            if is_whole and not (len(running) > 1 and any(one.alone for one in running)):
                return
            assert time.monotonic() < deadline, running
            time.sleep(0.1)

    def run(self, way: str, operation: Callable[[], None]) -> None:
        operation()
        losing = threading.Thread(target=self.lose, args=(way,), daemon=True)
        if RANK == 0:
            losing.start()
        while not Path("lost.0").exists():
            operation()
        if RANK == 0:
            losing.join()
        everything = (self.push, self.push_rows, self.pull, self.pull_rows, self.make, self.save)
        for each in everything:
            each()

    # --- the sums --------------------------------------------------------------------------------

    def audit(self) -> None:
        Path(f"counts.{RANK}").write_text(json.dumps(self.counts))
        lost.say("pushed")
        lost.wait_for_word("pushed", *range(WORLD))
        counts = [json.loads(Path(f"counts.{rank}").read_text()) for rank in range(WORLD)]
        total = {name: sum(one[name] for one in counts) for name in self.counts}
        assert self.kv.pull("dense").unique().tolist() == [-total["dense"]], total
        assert self.kv.row_pull("rows", IDS).unique().tolist() == [-total["rows"]], total
        for number in range(min(one["made"] for one in counts)):
            found = self.kv.pull(f"made {number}").unique().tolist()
            assert found == [-WORLD], (number, found)

    def go_in_step(self, way: str, mode: ps.Sync | ps.Stale) -> None:
        weights = torch.zeros(SIZE, requires_grad=True)
        optimizer = ps.Optimizer([weights], ps.SGD(lr=1.0), mode, timeout=LIMIT_S)
        losing = threading.Thread(target=self.lose, args=(way,), daemon=True)
        for step in range(STEPS):
            if RANK == 0 and step == STEPS // 4:
                losing.start()
            weights.grad = torch.full((SIZE,), float(WORLD))
            optimizer.step()
            time.sleep(0.05)
        if RANK == 0:
            losing.join()
        each = 1 if isinstance(mode, ps.Sync) else WORLD
        found = torch.empty(SIZE)
        optimizer._kv._pull_step("model/0", found, STEPS).wait()
        assert found.unique().tolist() == [-WORLD * STEPS * each], found.unique()


def main() -> None:
    way, meanwhile = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("rdma")
    worker = Worker(f"{way} {meanwhile} {os.environ.get('RDMACOLL_DAY')}")
    if meanwhile == "sync":
        worker.go_in_step(way, ps.Sync())
    elif meanwhile == "stale":
        worker.go_in_step(way, ps.Stale(2))
    else:
        worker.run(way, getattr(worker, meanwhile))
    worker.audit()
    print("exact", flush=True)
    lost.say("checked")
    lost.wait_for_word("checked", *range(WORLD))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
