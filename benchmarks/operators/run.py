"""What a call of torch.ops.rdmacoll costs: beside an operator that does nothing, and dist's calls.

    rdmarun -np 2 benchmarks/operators/run.py [--bytes 4] [--rounds 40]

With -np 1 there is nothing to wait for: what is above the no-op is the layer of the operators and
the way through the engine. A round gives each way a turn of so many calls, and the next round
begins with another one. Times are of rank 0, medians over the rounds; intervals are of 95%. Where
other programs have the cores, two ranks seldom run at once: then the quickest turns say more.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from rich.console import Console
from rich.table import Table
from torch.utils.cpp_extension import load

import rdmacoll.ops
from rdmacoll.bench.frame.interval import interval, ratio_of

NOOP, OURS = "no-op", "torch.ops.rdmacoll"
MODES: list[Callable[[], AbstractContextManager[object]]] = [torch.inference_mode, torch.no_grad]


def ways(count: int) -> dict[str, Callable[[], object]]:
    """An all_reduce of so many floats, zeros for ever."""
    tensor, group = torch.zeros(count), rdmacoll.ops.handle()
    world = dist.group.WORLD
    assert world is not None
    noop, ours = torch.ops.rdmacoll_bench.noop_, torch.ops.rdmacoll.all_reduce_
    return {
        NOOP: lambda: noop(tensor, group),
        OURS: lambda: ours(tensor, group),
        "dist.all_reduce": lambda: dist.all_reduce(tensor),
        "functional": lambda: functional.wait_tensor(functional.all_reduce(tensor, "sum", world)),
    }


def turn_us(call: Callable[[], object], calls: int) -> float:
    """Of one call."""
    dist.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls * 1e6


def measure(count: int, rounds: int, calls: int) -> dict[str, list[float]]:
    each = ways(count)
    names = list(each)
    for name in names:
        turn_us(each[name], calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(turn_us(each[name], calls))
    return times


def table(title: str, times: dict[str, list[float]]) -> Table:
    shown = Table(title=title)
    for heading in ("way", "us a call", "quickest", "above the no-op", "of ours"):
        shown.add_column(heading, no_wrap=heading == "way")
    for name, own in times.items():
        above = [one - other for one, other in zip(own, times[NOOP], strict=True)]
        low, high = interval(above)
        ratio = ratio_of(own, times[OURS])
        shown.add_row(
            name,
            f"{statistics.median(own):.2f}",
            f"{min(own):.2f}",
            f"{statistics.median(above):.2f} [{low:.2f}, {high:.2f}]",
            f"{ratio.median:.2f}x {ratio.between}",
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bytes", type=int, default=4, help="of the tensor, of float32")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=500, help="of one turn")
    options = parser.parse_args()
    if options.bytes < 4 or options.bytes % 4 or options.rounds < 1 or options.calls < 1:
        parser.error("give --bytes of whole floats, and 1 or more --rounds and --calls")
    torch.set_num_threads(1)
    gc.disable()
    source = Path(__file__).with_name("noop.cc")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # ninja
    dist.init_process_group("rdma", timeout=timedelta(seconds=300))
    load("rdmacoll_bench", [str(source)], is_python_module=False)  # one rank compiles, others wait
    console = Console(quiet=dist.get_rank() != 0, highlight=False)
    for mode in MODES:
        with mode():
            times = measure(options.bytes // 4, options.rounds, options.calls)
        ranks = f"{dist.get_world_size()} ranks" if dist.get_world_size() > 1 else "1 rank"
        console.print(table(f"{options.bytes} bytes, {ranks}, {mode.__name__}", times))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
