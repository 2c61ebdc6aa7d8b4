"""torch's pipelining: GPipe, 1F1B, and interleaved stages."""

import torch
import torch.distributed as dist
from recipe import ASKED, report
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from torch.nn.functional import mse_loss

STEPS, BATCH, WIDTH, MICROBATCHES = 4, 16, 16, 4

dist.init_process_group(ASKED)
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cpu")
generator = torch.Generator().manual_seed(0)
inputs = torch.randn(BATCH, WIDTH, generator=generator)
targets = inputs.flip(1)


def part(number: int) -> nn.Module:
    torch.manual_seed(number)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())


values: list[float] = []
for kind, stages_of_rank in ((ScheduleGPipe, 1), (Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2)):
    numbers = range(rank, world * stages_of_rank, world)
    parts = [part(number) for number in numbers]
    count = world * stages_of_rank
    stages = [PipelineStage(one, n, count, device) for one, n in zip(parts, numbers, strict=True)]
    stage = stages if kind is ScheduleInterleaved1F1B else stages[0]
    schedule = kind(stage, MICROBATCHES, loss_fn=mse_loss)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD([p for one in parts for p in one.parameters()], lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses: list[torch.Tensor] = []
        if rank == 0:
            schedule.step(inputs)
        else:
            schedule.step(target=targets, losses=losses)
        optimizer.step()
        values += [loss.item() for loss in losses]
    values += [p.double().sum().item() for one in parts for p in one.parameters()]
report(values)
dist.destroy_process_group()
