"""What ps.stats() says, and `rdmacoll ps status` as a worker starts it: there are two workers and
two servers.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from rdmacoll import ps
from rdmacoll.ps import JobStatus

LIMIT_S = 30.0
STORE = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"


def until(condition: Callable[[JobStatus], bool]) -> JobStatus:
    """Servers say what they do once a second."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = ps.stats()
        if condition(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def total(found: JobStatus, name: str) -> int:
    return sum(getattr(server, name) for server in found.servers)


def case_tables(kv: ps.KV) -> None:
    elements, rows = 300_000, 50
    kv.init("dense", torch.zeros(3, elements // 3), optimizer=ps.Adam(lr=0.5, betas=(0.5, 0.999)))
    kv.init("a number", torch.zeros(()))
    kv.init_rows("rows", dim=8, optimizer=ps.RowwiseAdagrad())
    if dist.get_rank() == 0:
        kv.row_push("rows", torch.arange(rows), torch.ones(rows, 8)).wait()
    dist.barrier()
    found = until(
        lambda found: (
            total(found, "elements") == 2 * (elements + 1) and total(found, "rows") == 2 * rows
        )
    )
    tables = {table.name: table for table in found.tables}
    assert tables["dense"].kind == "dense" and tables["dense"].shape == [3, elements // 3]
    assert tables["dense"].optimizer == "Adam(lr=0.5, betas=(0.5, 0.999))"
    assert (tables["a number"].shape, tables["a number"].optimizer) == ([], "none")
    assert tables["dense"].rows is None and tables["rows"].rows == rows
    assert (tables["rows"].kind, tables["rows"].shape) == ("rows", [8])
    assert tables["rows"].optimizer == "RowwiseAdagrad()"
    assert [server.tables for server in found.servers] == [3, 3]
    assert total(found, "memory_bytes") >= 2 * 4 * elements


def case_servers(kv: ps.KV) -> None:
    before = ps.stats()
    assert before.store == STORE and before.replicas == 2
    assert [server.number for server in before.servers] == [0, 1]
    assert all(server.state == "serves" and server.silent_s == 0 for server in before.servers)
    assert total(before, "buckets") == 1024
    pids = {server.pid for server in before.servers}
    assert all(f"RDMACOLL_SERVER={one.number}" in environ(one.pid) for one in before.servers)
    assert len(pids) == 2 and os.getpid() not in pids
    assert all(server.memory_limit_bytes > 1 << 28 for server in before.servers)
    kv.init("counted", torch.zeros(1))
    kv.init_rows("counted rows", dim=1)
    dist.barrier()
    before = ps.stats()
    dist.barrier()
    for new in range(10):  # rows: others are not asked for
        kv.push("counted", torch.ones(1)).wait()
        kv.row_pull("counted rows", torch.tensor([10 * dist.get_rank() + new]))
    dist.barrier()
    until(
        lambda found: (
            total(found, "pushes") >= total(before, "pushes") + 2 * 20
            and total(found, "pulls") >= total(before, "pulls") + 20
        )
    )


def environ(pid: int) -> list[str]:
    with open(f"/proc/{pid}/environ") as file:
        return file.read().split("\0")


def case_the_command(_kv: ps.KV) -> None:
    """It is no process of the job."""
    command = [sys.executable, "-m", "rdmacoll", "ps", "status"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    job = next(one for one in json.loads(done.stdout) if one["store"] == STORE)
    assert [server["pid"] for server in job["servers"]] == [one.pid for one in ps.stats().servers]
    assert {table["name"] for table in job["tables"]} >= {"dense", "rows"}
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"2 servers of the job at {STORE}, all kept twice\n" in done.stdout, done
    shown = [line.split() for line in done.stdout.splitlines()]
    assert ["rows", "rows", "8", "RowwiseAdagrad()", "50", "-", "-"] in shown, done.stdout
    stranger = subprocess.run(
        [*command, "--store", STORE], capture_output=True, text=True, check=False
    )
    assert stranger.returncode == 1 and "nobody of this job has signed" in stranger.stderr


def case_who_is_behind(_kv: ps.KV) -> None:
    weights = torch.zeros(4, requires_grad=True)
    optimizer = ps.Optimizer([weights], torch.optim.SGD, mode=ps.Stale(10), lr=0.1)
    made = [3, 8][dist.get_rank()]
    for _ in range(made):
        weights.grad = torch.ones(4)
        optimizer.step()
    until(lambda found: [3, 8] in [table.steps for table in found.tables])
    dist.barrier()


def case_arguments(_kv: ps.KV) -> None:
    with pytest.raises(ValueError, match="timeout=-1"):
        ps.stats(timeout=-1)
