"""A server of the parameter server over verbs beside perftest, on one device, in turns.

    python benchmarks/servers/over_verbs.py [--device rxe0] [--rounds 5]

A dense table of 16 MiB is pulled, and pushed to with SGD until that is acknowledged, against
`ib_read_bw` and `ib_write_bw` of messages as large, as many at a time as the table has shards:
every round's MiB/s, then the median of the rounds' ratios, the smallest and the largest. The server
and the worker are processes of this machine that speak verbs to each other. No mark is asserted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

from rdmacoll import ps

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from perftest import MIB, last_row, perftest
from rdma_remote_marks import DEVICES, routed_gid

HOST = "127.0.0.1"
TABLE_MIB = 16
START_S = 240.0  # of a server, which imports torch: a minute where the processor is emulated
END_S = 30.0


@contextmanager
def server(port: int) -> Iterator[None]:
    which = ["--number", "0", "--servers", "1", "--store", f"{HOST}:{port}"]
    process = subprocess.Popen([sys.executable, "-m", "rdmacoll", "ps", "serve", *which])
    try:
        yield
    finally:
        process.terminate()
        process.wait(END_S)


def rate(what: Callable[[], object], count: int) -> float:
    """In MiB/s."""
    began = time.perf_counter()
    for _ in range(count):
        what()
    return count * TABLE_MIB / (time.perf_counter() - began)


def measure(kv: ps.KV, device: list[str], rounds: int, count: int) -> None:
    elements = TABLE_MIB * MIB // 4
    kv.init("table", torch.zeros(elements), ps.SGD(lr=0.1))
    out, gradient = torch.empty(elements), torch.ones(elements)
    depth = -(-elements // (256 * 1024))  # shards
    shape = ["-s", str(MIB), "-n", str(count * depth), "-t", str(depth), "--cq-mod", "1"]
    ways: dict[str, tuple[str, Callable[[], object]]] = {
        "pull": ("read", lambda: kv.pull("table", out)),
        "push": ("write", lambda: kv.push("table", gradient).wait()),
    }
    for _, way in ways.values():  # places are learned
        rate(way, 2)
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        line = f"round {number}:"
        for name, (operation, way) in ways.items():
            theirs = last_row(perftest(f"ib_{operation}_bw", shape, device, 18900 + number))[3]
            ours = rate(way, count)
            ratios[name].append(ours / theirs)
            line += f" ib_{operation}_bw {theirs:.1f}, {name} {ours:.1f};"
        print(line, flush=True)
    for name, (operation, _) in ways.items():
        values = ratios[name]
        median, low, high = statistics.median(values), min(values), max(values)
        print(f"{name}: {median:.2f} of ib_{operation}_bw ({low:.2f} to {high:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", help="the first one, if none is given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=4, help="of pulls and pushes in a round")
    options = parser.parse_args()
    name = options.device or min(path.name for path in DEVICES.iterdir())
    os.environ |= {"RDMACOLL_TRANSPORT": "verbs", "RDMACOLL_HCA": "=" + name}
    torch.set_num_threads(1)
    store = dist.TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    with server(store.port):
        ps.connect(START_S, store=f"{HOST}:{store.port}")
        print(f"{name}: MiB/s, a table of {TABLE_MIB} MiB, {options.count} times a round")
        device = ["-d", name, "-x", str(routed_gid(name))]
        measure(ps.KV(timeout=120.0), device, options.rounds, options.count)


if __name__ == "__main__":
    main()
