"""A worker of run.py, which writes what it measures: worker.py PART ROUNDS FILE."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import row_peers
import torch
import torch.distributed as dist
from files import files
from gpu import gpu
from loads import loads
from recommender import recommender
from sync import sync
from turns import Seconds, Ways, in_turns, timed

from rdmacoll import ps

ELEMENTS = 16 << 20  # 64 MB
OPTIMIZERS = {"add": None, "SGD": ps.SGD(lr=0.1), "Adam": ps.Adam(lr=1e-3)}
MOMENT_S = 0.001
REST_S = 0.005


def memcpy() -> Callable[[], float]:
    source, target = torch.ones(ELEMENTS), torch.zeros(ELEMENTS)
    return timed(lambda: target.copy_(source))


def push_whole(kv: ps.KV, name: str, gradient: torch.Tensor) -> None:
    kv.wait(kv.push(name, gradient))


def dense(kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    gradient, out = torch.full((ELEMENTS,), 1e-3), torch.empty(ELEMENTS)
    copy = memcpy()
    cases = {}
    for name, optimizer in OPTIMIZERS.items():
        kv.init(name, torch.zeros(ELEMENTS), optimizer)
        push = timed(partial(push_whole, kv, name, gradient))
        cases[f"push, {name}"] = in_turns(rounds, {"servers": push, "memcpy": copy})
    pull = timed(partial(kv.pull, "add", out))
    seconds = in_turns(rounds, {"servers": pull, "memcpy": copy, "again": copy})
    again = seconds.pop("again")
    return {**cases, "pull": seconds, "memcpy": {"memcpy": seconds["memcpy"], "again": again}}


def pushes(kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    kv.init("SGD", torch.zeros(ELEMENTS), ps.SGD(lr=0.1))
    cases = {}
    for case, gradient in {
        "push, SGD": torch.empty(ELEMENTS),
        "push, SGD, kv.empty()": kv.empty(ELEMENTS),
    }.items():
        push = timed(partial(push_whole, kv, "SGD", gradient.fill_(1e-3)))
        cases[case] = in_turns(rounds, {"servers": push, "memcpy": memcpy()})
    return cases


def rows(kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    table = row_peers.table()
    kv.init_rows("rows", dim=row_peers.DIM, rows=row_peers.ROWS)
    kv.wait(kv.row_push("rows", torch.arange(row_peers.ROWS), table))
    cases = {}
    with row_peers.peers() as found:
        for count in (32, 512, 8192):
            ids = torch.randperm(row_peers.ROWS)[:count]
            out = torch.empty(count, row_peers.DIM)
            pull = partial(kv.row_pull, "rows", out=out)
            ways: Ways = {"servers": partial(row_peers.seconds_of, pull, ids)}
            for name, peer in found.items():
                ways[name] = partial(peer.seconds, ids)
                if not torch.equal(peer.rows(ids), kv.row_pull("rows", ids)):
                    raise SystemExit(f"{name} has other rows than the servers")
            cases[f"{count} rows"] = in_turns(rounds, ways)
    return cases


def rest(kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    kv.init_rows("rows", dim=row_peers.DIM)
    ids = torch.arange(32)
    out = torch.empty(len(ids), row_peers.DIM)
    pull = timed(partial(kv.row_pull, "rows", ids, out))
    cases: dict[str, Seconds] = {f"pull {number}": {"servers": []} for number in range(1, 11)}
    for _ in range(rounds):
        time.sleep(REST_S)
        for seconds in cases.values():
            seconds["servers"].append(pull())
    return cases


def pid_of_server(number: int) -> int:
    for process in psutil.Process(os.getppid()).children():
        if process.environ().get("RDMACOLL_SERVER") == str(number):
            return process.pid
    raise LookupError(f"there is no server {number}")


def failover(kv: ps.KV, _rounds: int) -> dict[str, Seconds]:
    """How long the longest push and pull took after a server was killed, which is done once."""
    size = 1 << 20
    kv.init("w", torch.zeros(size), ps.SGD(lr=1.0))
    gradient, longest = torch.ones(size), 0.0
    until = time.perf_counter() + 2
    is_killed = False
    while time.perf_counter() < until:
        began = time.perf_counter()
        kv.wait(kv.push("w", gradient))
        kv.pull("w")
        longest = max(longest, time.perf_counter() - began)
        if not is_killed and time.perf_counter() > until - 1:
            is_killed = True
            longest = 0.0
            os.kill(pid_of_server(1), signal.SIGKILL)
        time.sleep(MOMENT_S)
    return {"first answer": {"servers": [longest]}}


MEASURES = {
    "dense": dense,
    "rows": rows,
    "replicas": pushes,
    "alone": pushes,
    "rest": rest,
    "failover": failover,
    "sync": sync,
    "recommender": recommender,
    "gpu": gpu,
    "files": files,
    "zipf": loads,
    "zipf-4": loads,
}


def main() -> None:
    part, rounds, json_at = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    gc.disable()  # its pauses would be some system's
    dist.init_process_group("rdma")
    found = MEASURES[part](ps.KV(), rounds)
    if dist.get_rank() == 0:
        json_at.write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
