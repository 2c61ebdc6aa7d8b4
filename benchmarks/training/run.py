"""Training end to end on several backends: samples per second and the share of communication.

    rdmarun -np 2 benchmarks/training/run.py [--json result.json] [--plot result.svg]

Every system (rdmacoll, on ordinary memory and in its heap, gloo, and each rank alone, without any
communication, on either memory) trains a model of its own from the same seed, in the same processes
and in turns: a round gives each a turn, the next round begins with another. Figures are medians
over the rounds, ratios those of the rounds' ratios. The losses of all that communicate must agree,
or the status is not 0.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from rich.console import Console
from training_jobs import PARALLELISMS, WORKLOADS, System, Trainer, Workload
from training_report import ALONE, BASELINE, IN_HEAP, Result, Row, draw, heading, row_of, table

import rdmacoll
from rdmacoll.bench.machine import measure_machine

TIMEOUT = timedelta(seconds=120)
WARM_UP_STEPS = 4  # DDP makes its buckets in the first two
CHECKED_STEPS, TOLERANCE = 20, 1e-5  # later, differences in rounding may have grown


def systems() -> list[System]:
    ours, gloo = (dist.new_group(backend=name, timeout=TIMEOUT) for name in ("rdma", "gloo"))
    return [
        System("rdma", ours, nullcontext),
        System("rdma" + IN_HEAP, ours, rdmacoll.registered_memory),
        System("gloo", gloo, nullcontext),
        System(ALONE, None, nullcontext),
        System(ALONE + IN_HEAP, None, rdmacoll.registered_memory),
    ]


def slowest(mine: float) -> float:
    value = torch.tensor(mine, dtype=torch.float64)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return value.item()


def measure(workload: Workload, parallelism: str, options: argparse.Namespace) -> Row:
    trainers = {one.name: Trainer(workload, parallelism, one) for one in options.systems}
    for one in trainers.values():
        one.turn_s(WARM_UP_STEPS)
    slowest_step_s = max(slowest(one.turn_s(1)) for one in trainers.values())
    steps = max(1, round(options.turn_ms / 1e3 / slowest_step_s))
    names = list(trainers)
    turns_s: dict[str, list[float]] = {name: [] for name in names}
    for number in range(options.rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            dist.barrier()
            turns_s[name].append(slowest(trainers[name].turn_s(steps)))
    together = [one.name for one in options.systems if one.group is not None]
    check_losses(workload, {name: trainers[name].losses for name in together})
    samples = steps * workload.batch_size * dist.get_world_size()
    return row_of(workload.name, parallelism, samples, turns_s)


class WrongLosses(Exception):
    """Two systems that compute the same do not have the same losses."""


def check_losses(workload: Workload, losses: dict[str, list[float]]) -> None:
    expected = torch.tensor(losses[BASELINE][:CHECKED_STEPS])
    for name, own in losses.items():
        worst = (torch.tensor(own[:CHECKED_STEPS]) - expected).abs().max().item()
        if not worst <= TOLERANCE:
            raise WrongLosses(
                f"{workload.name}: the losses on {name} differ from gloo's by up to {worst:.1g}"
            )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--turn-ms", type=float, default=300, help="a turn of the slowest system")
    parser.add_argument("--json", type=Path, help="write the result there")
    parser.add_argument("--plot", type=Path, help="draw it there, as .svg or .png")
    options = parser.parse_args()
    if options.rounds < 1 or options.turn_ms <= 0:
        parser.error(
            f"--rounds {options.rounds} --turn-ms {options.turn_ms}: give 1 or more rounds and "
            "turns of more than 0 ms"
        )
    return options


def main() -> None:
    options = arguments()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")  # nobody writes it
    dist.init_process_group("gloo", timeout=TIMEOUT)
    world = dist.group.WORLD
    assert world is not None
    options.systems = systems()
    console = Console(quiet=dist.get_rank() != 0, highlight=False)
    result = Result(dist.get_world_size(), torch.__version__, measure_machine(world), [])
    try:
        for name in options.workloads:
            for parallelism in PARALLELISMS:
                console.print(f"{name}, {parallelism} ...")
                result.rows.append(measure(WORKLOADS[name](), parallelism, options))
    except WrongLosses as error:
        # A thread of gloo that still holds a tensor when Python ends aborts the process.
        dist.destroy_process_group()
        sys.exit(str(error))
    console.print(heading(result), table(result), sep="\n")
    if dist.get_rank() == 0 and options.json:
        options.json.write_text(json.dumps(asdict(result), indent=1) + "\n")
    if dist.get_rank() == 0 and options.plot:
        draw(result, options.plot)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
