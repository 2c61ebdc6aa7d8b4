"""Horovod's face: what names cost, a step of its optimizer, and a rank that does nothing.

    rdmarun -np 2 benchmarks/training/horovod_face.py [--pairs 40]

    names   161 tensors of 102 MB by name, in another order on each rank, against dist.all_reduce
            of them in one order (so many has ResNet-50)
    step    hvd.DistributedOptimizer against DistributedDataParallel, on models of run.py
    idle    wake-ups a second of a process that has nothing to do

Both sides of a pair run in the same processes, in turns; a ratio is the median over the pairs, with
its 95% interval. The control is the second side against itself, in the same way.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table
from training_jobs import WORKLOADS, System, Trainer, Workload

import rdmacoll.horovod as hvd
from rdmacoll.bench.frame.interval import ratio_of

TIMEOUT = timedelta(seconds=120)
WARM_UP_STEPS = 4  # both make their buckets anew after the first
CHECKED_STEPS, TOLERANCE = 20, 1e-5  # later, differences in rounding may have grown
TENSORS, ALL_BYTES = 161, 102 << 20


def slowest(mine: float) -> float:
    value = torch.tensor(mine, dtype=torch.float64)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return value.item()


def turn(run: Callable[[], None]) -> float:
    dist.barrier()
    began = time.perf_counter()
    run()
    return slowest(time.perf_counter() - began)


def compare(ours: Callable[[], None], other: Callable[[], None], pairs: int) -> list[str]:
    """The ratio of the two, and that of the other against itself."""
    times: dict[str, list[float]] = {"ours": [], "other": [], "again": []}
    sides = [("ours", ours), ("other", other), ("again", other)]
    for _, run in sides:
        turn(run)
    for number in range(pairs):
        first = number % len(sides)
        for name, run in sides[first:] + sides[:first]:
            times[name].append(turn(run))
    ratio, control = (ratio_of(times[name], times["other"]) for name in ("ours", "again"))
    each_ms = 1e3 * sorted(times["ours"])[pairs // 2]
    return [
        f"{each_ms:.2f} ms",
        *(f"{one.median:.3f} {one.between}" for one in (ratio, control)),
    ]


def sizes() -> list[int]:
    """Elements of each: most are short, as those of ResNet-50 are."""
    drawn = random.Random(1)
    shares = [drawn.paretovariate(0.7) for _ in range(TENSORS)]
    return [max(1, int(share / sum(shares) * ALL_BYTES / 4)) for share in shares]


def names(pairs: int) -> list[str]:
    tensors = [torch.zeros(size) for size in sizes()]
    drawn = random.Random(hvd.rank())

    def ours() -> None:
        order = drawn.sample(range(TENSORS), TENSORS)
        handles = [hvd.allreduce_async_(tensors[i], name=f"t{i}", op=hvd.Sum) for i in order]
        for handle in handles:
            hvd.synchronize(handle)

    def other() -> None:
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work in works:
            assert work is not None
            work.wait()

    return compare(ours, other, pairs)


class HorovodTrainer(Trainer):
    """The same model and data, stepped by Horovod's optimizer."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload, "DDP", System("horovod", None, nullcontext))
        hvd.broadcast_parameters(self._model.state_dict(), root_rank=0)
        self._optimizer = hvd.DistributedOptimizer(
            self._optimizer, named_parameters=self._model.named_parameters()
        )


def step(workload: str, pairs: int) -> list[str]:
    made = WORKLOADS[workload]()
    ours = HorovodTrainer(made)
    ddp = Trainer(made, "DDP", System("DDP", dist.group.WORLD, nullcontext))
    for trainer in (ours, ddp):
        trainer.turn_s(WARM_UP_STEPS)
    steps = max(1, round(0.1 / slowest(ddp.turn_s(1))))
    row = compare(lambda: _run(ours, steps), lambda: _run(ddp, steps), pairs)
    checked = min(CHECKED_STEPS, len(ours.losses), len(ddp.losses))
    pairs_of_losses = zip(ours.losses[:checked], ddp.losses[:checked], strict=True)
    differ = max(abs(one - other) for one, other in pairs_of_losses)
    if not differ <= TOLERANCE:
        sys.exit(f"{workload}: losses differ from DDP's by up to {differ:.1g}")
    return row


def _run(trainer: Trainer, steps: int) -> None:
    trainer.turn_s(steps)


def wakeups() -> int:
    """Of all threads of this process, of their own accord."""
    count = 0
    for task in Path("/proc/self/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                count += int(line.split()[1])
    return count


def idle(seconds: float) -> list[str]:
    dist.barrier()
    before, began = wakeups(), time.perf_counter()
    time.sleep(seconds)
    each = (wakeups() - before) / (time.perf_counter() - began)
    return [f"{slowest(each):.1f} /s", "", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--idle-s", type=float, default=5.0)
    options = parser.parse_args()
    if options.pairs < 1 or options.idle_s <= 0:
        parser.error(
            f"--pairs {options.pairs} --idle-s {options.idle_s}: give 1 or more pairs, and more "
            "than 0 s"
        )
    torch.set_num_threads(1)
    dist.init_process_group("rdma", timeout=TIMEOUT)
    hvd.init()
    table = Table("what", "ours", "ratio (95%)", "control")
    table.add_row("names", *names(options.pairs))
    for name in options.workloads:
        table.add_row(f"step, {name}", *step(name, options.pairs))
    table.add_row("idle", *idle(options.idle_s))
    Console(quiet=hvd.rank() != 0, highlight=False).print(table)
    hvd.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
