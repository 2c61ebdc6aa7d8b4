"""What ranks and guests of test_guests.py run: `guests.py rank|pushes|trains|refused ...`.

They tell the test how far they are in files of the folder that they run in. Gradients are ones and
the rate is 1, so a table is minus the number of pushes.
Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from rdmacoll import ps

TIMEOUT_S = 30.0
SIZE, IDS = 1000, torch.arange(-5, 5)


def tables() -> ps.KV:
    kv = ps.KV(timeout=TIMEOUT_S)
    kv.init("dense", torch.zeros(SIZE), optimizer=ps.SGD(lr=1.0))
    kv.init_rows("rows", dim=4, optimizer=ps.SGD(lr=1.0))
    return kv


def push(kv: ps.KV, name: str, is_over: Callable[[int], bool]) -> None:
    """One after the other; says how many were acknowledged."""
    count = 0
    while not is_over(count):
        pushed = kv.push("dense", torch.ones(SIZE)), kv.row_push("rows", IDS, torch.ones(10, 4))
        kv.wait(*pushed)
        count += 1
        Path(f"{name}.new").write_text(str(count))
        Path(f"{name}.new").rename(f"acknowledged.{name}")
        time.sleep(0.005)


def found(kv: ps.KV) -> list[float]:
    """Of each table what all its elements are."""
    return [-one.unique().item() for one in (kv.pull("dense"), kv.row_pull("rows", IDS))]


def rank(number: str) -> None:
    """One of two, which meet in the Store that MASTER_ADDR and MASTER_PORT name."""
    port = int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port, is_master=False)
    dist.init_process_group("rdma", store=store, rank=int(number), world_size=2)
    push(tables(), f"rank{number}", lambda _: Path("stop").exists())
    dist.barrier()
    dist.destroy_process_group()


def pushes(store: str, name: str, most: str) -> None:
    """A guest, which pushes so often, or until it is told to end; -1: for ever."""
    ps.connect(TIMEOUT_S, store=store)
    ps.connect(TIMEOUT_S)  # it is connected
    kv = tables()
    push(kv, name, lambda count: count == int(most) or Path(f"stop.{name}").exists())
    print("found", *found(kv), flush=True)


def trains(store: str) -> None:
    """A guest that trains a model, and a module of rows."""
    ps.connect(TIMEOUT_S, store=store)
    net = nn.ParameterList([torch.full((3,), 7.0)])
    optimizer = ps.Optimizer(net.parameters(), torch.optim.SGD, lr=1.0)
    begun = net[0].tolist()
    for _ in range(5):
        net[0].grad = torch.ones(3)
        optimizer.step()
    bag = ps.Embedding("bag", 2, optimizer=ps.SGD(lr=1.0))
    for _ in range(5):
        bag(torch.tensor([1])).sum().backward()
    bag.wait()
    print("begun", begun, "trained", net[0].tolist(), bag(torch.tensor([1])).tolist(), flush=True)
    ps.snapshot("by a guest", alone=True)
    for call in (
        lambda: ps.Optimizer(net.parameters(), ps.SGD(), ps.Sync(), "sync"),
        lambda: ps.Embedding("stale", 2, pace=ps.Stale(1)),
        lambda: ps.snapshot("together"),
        lambda: ps.restore("by a guest"),
        lambda: ps.connect(store="127.0.0.1:1"),
    ):
        say_refusal(call)


def refused(seconds: str, store: str, *more: str) -> None:
    """more: the job's id."""
    options: dict[str, Any] = {"rdzv_id": more[0]} if more else {}
    began = time.monotonic()
    say_refusal(lambda: ps.connect(float(seconds), store=store, **options))
    print(f"after {time.monotonic() - began:.1f} s", flush=True)


def say_refusal(call: Callable[[], object]) -> None:
    try:
        call()
        print("not refused")
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    roles: dict[str, Callable[..., None]] = {
        "rank": rank,
        "pushes": pushes,
        "trains": trains,
        "refused": refused,
    }
    roles[sys.argv[1]](*sys.argv[2:])
