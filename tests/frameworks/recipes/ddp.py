"""torch's DistributedDataParallel."""

import torch
import torch.distributed as dist
from recipe import ASKED, batches, net, report
from torch.nn.functional import mse_loss

dist.init_process_group(ASKED)
model = torch.nn.parallel.DistributedDataParallel(net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for inputs, targets in batches(dist.get_rank()):
    loss = mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report(losses)
dist.destroy_process_group()
