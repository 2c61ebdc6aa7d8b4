"""torch's FSDP1 on the CPU, ZeroRedundancyOptimizer, PeriodicModelAverager, and compiled DDP."""

import torch
import torch.distributed as dist
from recipe import ASKED, batches, net, report
from torch import nn
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group(ASKED)
values: list[float] = []


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for inputs, targets in batches(dist.get_rank()):
        loss = mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())


sharded = FullyShardedDataParallel(net(), device_id=torch.device("cpu"))
train(sharded, torch.optim.SGD(sharded.parameters(), lr=0.05))

model = DistributedDataParallel(net())
zero = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
train(model, zero)

alone = net()
averager = PeriodicModelAverager(period=2)
for _ in range(2):
    train(alone, torch.optim.SGD(alone.parameters(), lr=0.05))
    averager.average_parameters(alone.parameters())

ddp = DistributedDataParallel(net())
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
ddp.compile(backend="aot_eager")
train(ddp, optimizer)
report(values)
dist.destroy_process_group()
