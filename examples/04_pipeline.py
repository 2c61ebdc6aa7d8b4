"""A pipeline by hand: each rank is a stage, and receives one microbatch while it works on another.

rdmarun -np 3 examples/04_pipeline.py
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

MICROBATCHES, ROWS, WIDTH = 8, 16, 256


def stage(number: int) -> nn.Module:
    torch.manual_seed(number)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).eval()


def microbatch(number: int) -> Tensor:
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(number))


def run_stage(rank: int, last: int) -> list[Tensor]:
    """Returns what leaves the pipeline here: something on the last rank only."""
    layer = stage(rank)
    inputs = [microbatch(n) if rank == 0 else torch.empty(ROWS, WIDTH) for n in range(MICROBATCHES)]
    # All receives are posted before the first is needed: data move while the stage computes.
    receives: list[Any] = []
    if rank > 0:
        receives = [dist.irecv(tensor, rank - 1, tag=n) for n, tensor in enumerate(inputs)]
    sends: list[Any] = []
    outputs = []
    for number, features in enumerate(inputs):
        if receives:
            receives[number].wait()
        output = layer(features)
        outputs.append(output)
        if rank < last:
            sends.append(dist.isend(output, rank + 1, tag=number))
    for send in sends:
        send.wait()
    return outputs if rank == last else []


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="rdma")
    dist.init_process_group(parser.parse_args().backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    outputs = run_stage(rank, world - 1)
    if outputs:
        serial = nn.Sequential(*(stage(number) for number in range(world)))
        for number, output in enumerate(outputs):
            if not torch.equal(output, serial(microbatch(number))):
                raise SystemExit(f"microbatch {number} differs from the serial computation")
        print(f"{MICROBATCHES} microbatches through {world} stages, equal to a serial run")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
