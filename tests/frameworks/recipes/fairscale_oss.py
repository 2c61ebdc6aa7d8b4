"""fairscale: an optimizer whose state is sharded (OSS), and ShardedDataParallel."""

import torch
import torch.distributed as dist
from fairscale.nn.data_parallel import ShardedDataParallel
from fairscale.optim.oss import OSS
from recipe import ASKED, batches, net, report
from torch.nn.functional import mse_loss

dist.init_process_group(ASKED)
model = net()
optimizer = OSS(model.parameters(), optim=torch.optim.SGD, lr=0.05, momentum=0.9)
model = ShardedDataParallel(model, optimizer)
losses = []
for inputs, targets in batches(dist.get_rank()):
    loss = mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report(losses)
