"""accelerate: the group is made first, and Accelerator(cpu=True) finds it."""

import torch
import torch.distributed as dist
from accelerate import Accelerator
from recipe import ASKED, batches, net, report
from torch.nn.functional import mse_loss

if ASKED != "gloo":
    dist.init_process_group(ASKED)
accelerator = Accelerator(cpu=True)
model = net()
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.05))
losses = []
for inputs, targets in batches(accelerator.process_index):
    loss = mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    losses.append(accelerator.gather(loss.detach().reshape(1)).sum().item())
report(losses)
accelerator.end_training()
