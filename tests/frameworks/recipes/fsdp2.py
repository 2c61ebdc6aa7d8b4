"""torch's FSDP2 on a mesh: fully_shard."""

import torch
import torch.distributed as dist
from recipe import ASKED, batches, net, report
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss

dist.init_process_group(ASKED)
model = net()
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for inputs, targets in batches(dist.get_rank()):
    loss = mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report(losses)
dist.destroy_process_group()
