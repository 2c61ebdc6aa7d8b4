"""Collectives of several backends side by side, in the same processes and in interleaved rounds.

    rdmarun -np 2 benchmarks/collectives.py
    torchrun --nproc-per-node 2 benchmarks/collectives.py --ops all_reduce,broadcast --json out.json

A round times every backend once, in turn, so that what the machine does meanwhile meets all alike.
Times are the median over a round's calls, then over the rounds, of the slowest rank; the ratio is
the median of the rounds' ratios. busbw is as nccl-tests defines it. Results are checked.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # registers the backend "fake"
from machine import call_us, copy_gb_per_s, flag_us
from torch import Tensor

SIZES = [4, 64, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
ROUND_S = 0.05  # what a backend may take per round
MAX_CALLS = 400

Call = Callable[[], object]


@dataclass
class Row:
    op: str
    bytes: int
    us: dict[str, float]  # by backend
    busbw_gb_per_s: dict[str, float]
    times_faster: dict[str, float]  # the first backend, than each of the others


@dataclass
class Case:
    """One operation, ready to be called; `bus` is busbw's factor."""

    call: Call
    correct: Callable[[], bool]
    bus: float
    elements: int


def own(count: int) -> Tensor:
    return torch.full((count,), float(dist.get_rank() + 1))


def prepare(op: str, whole: int, group: dist.ProcessGroup) -> Case:
    rank, world = dist.get_rank(), dist.get_world_size()
    everyone = world * (world + 1) / 2
    part = max(1, whole // world)
    share = (world - 1) / world
    if op == "all_reduce":
        tensor = own(whole)
        return Case(
            lambda: dist.all_reduce(tensor, group=group),
            lambda: bool((tensor == everyone).all()),
            2 * share,
            whole,
        )
    if op == "broadcast":
        tensor = own(whole)
        return Case(
            lambda: dist.broadcast(tensor, 0, group=group),
            lambda: bool((tensor == 1).all()),
            1.0,
            whole,
        )
    if op == "all_gather":
        piece, output = own(part), torch.zeros(world * part)
        wanted = torch.arange(1.0, world + 1).repeat_interleave(part)
        return Case(
            lambda: dist.all_gather_into_tensor(output, piece, group=group),
            lambda: torch.equal(output, wanted),
            share,
            world * part,
        )
    if op == "reduce_scatter":
        tensor, output = own(world * part), torch.zeros(part)
        return Case(
            lambda: dist.reduce_scatter_tensor(output, tensor, group=group),
            lambda: bool((output == everyone).all()),
            share,
            world * part,
        )
    if op == "all_to_all":
        tensor, output = own(world * part), torch.zeros(world * part)
        wanted = torch.arange(1.0, world + 1).repeat_interleave(part)
        return Case(
            lambda: dist.all_to_all_single(output, tensor, group=group),
            lambda: torch.equal(output, wanted),
            share,
            world * part,
        )
    raise SystemExit(f"--ops {op}: unknown; there are {', '.join(OPS)} (rank {rank})")


OPS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")


class Bench:
    def __init__(self, backends: list[str], rounds: int) -> None:
        self.backends, self.rounds = backends, rounds
        self.groups = {backend: dist.new_group(backend=backend) for backend in backends}
        self.control = dist.new_group(backend="gloo")

    def worst(self, value: float) -> float:
        """Over the ranks."""
        tensor = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self.control)
        return tensor.item()

    def measure(self, op: str, size: int) -> Row:
        cases = {b: prepare(op, max(1, size // 4), self.groups[b]) for b in self.backends}
        calls = {backend: self.warm_up(backend, case) for backend, case in cases.items()}
        rounds: dict[str, list[float]] = {backend: [] for backend in self.backends}
        for number in range(self.rounds):
            turn = number % len(self.backends)
            for backend in self.backends[turn:] + self.backends[:turn]:
                dist.barrier(group=self.control)
                rounds[backend].append(self.worst(median_us(cases[backend].call, calls[backend])))
        us = {backend: statistics.median(times) for backend, times in rounds.items()}
        first = self.backends[0]
        moved = 4 * cases[first].elements
        return Row(
            op,
            moved,
            us,
            {b: moved * cases[b].bus / us[b] / 1e3 for b in self.backends},
            {
                b: statistics.median(t / f for t, f in zip(rounds[b], rounds[first], strict=True))
                for b in self.backends[1:]
            },
        )

    def warm_up(self, backend: str, case: Case) -> int:
        """Checks the first result; returns how many calls fit into a round, on every rank."""
        case.call()
        if not case.correct():
            raise SystemExit(f"{backend} computes something else on rank {dist.get_rank()}")
        slowest = self.worst(median_us(case.call, 5)) / 1e6
        return max(1, min(MAX_CALLS, int(ROUND_S / slowest)))


def median_us(call: Call, count: int) -> float:
    times = []
    for _ in range(count):
        began = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - began)
    return statistics.median(times) / 1e3


def text_of_size(size: int) -> str:
    for shift, unit in ((20, "MB"), (10, "KB")):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def table_row(row: Row, backends: list[str]) -> str:
    cells = [f"{row.op:<15}{text_of_size(row.bytes):>8}"]
    for backend in backends:
        cells.append(f"{row.us[backend]:>12.1f} us {row.busbw_gb_per_s[backend]:>7.2f} GB/s")
    cells += [f"{ratio:>8.1f}x" for ratio in row.times_faster.values()]
    return " ".join(cells)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--backends", default="rdma,gloo", help="the first is compared with each")
    parser.add_argument("--ops", default="all_reduce", help="of " + ", ".join(OPS))
    parser.add_argument("--max-bytes", type=int, default=SIZES[-1])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="write the results there too")
    return parser.parse_args()


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    backends = options.backends.split(",")
    dist.init_process_group("gloo")
    say = print if dist.get_rank() == 0 else lambda *_: None
    bench = Bench(backends, options.rounds)
    machine = {
        "ranks": dist.get_world_size(),
        "copy_gb_per_s": copy_gb_per_s(bench.control),
        "call_us": call_us(dist.new_group(backend="fake")),
        "flag_us": flag_us() if dist.get_rank() == 0 else None,
    }
    dist.barrier(group=bench.control)
    flag = f"{machine['flag_us']:.2f} us" if machine["flag_us"] is not None else "no compiler"
    say(
        f"{machine['ranks']} ranks · copy {machine['copy_gb_per_s']:.1f} GB/s each · flag {flag} · "
        f"torch's own call {machine['call_us']:.1f} us"
    )
    say(
        " " * 24
        + " ".join(f"{backend:>23}" for backend in backends)
        + f"   {backends[0]} is faster"
    )
    rows = []
    for op in options.ops.split(","):
        for size in (size for size in SIZES if size <= options.max_bytes):
            rows.append(bench.measure(op, size))
            say(table_row(rows[-1], backends))
    if options.json and dist.get_rank() == 0:
        result = {"machine": machine, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
