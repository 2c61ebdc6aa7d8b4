"""MONAI: a UNet under DDP, Dice scores, and gathers of uneven tensors and of strings."""

import torch
import torch.distributed as dist
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.utils import evenly_divisible_all_gather, string_list_all_gather
from recipe import ASKED, STEPS, report
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group(ASKED)
rank = dist.get_rank()
torch.manual_seed(1)
model = DistributedDataParallel(
    UNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(4, 8), strides=(2,))
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion, dice = DiceLoss(sigmoid=True), DiceMetric()
generator = torch.Generator().manual_seed(rank)
values = []
for _ in range(STEPS):
    images = torch.rand(2, 1, 16, 16, generator=generator)
    labels = (images > 0.5).float()
    outputs = model(images)
    loss = criterion(outputs, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    dice(outputs.detach() > 0, labels)
    values.append(loss.item())
values.append(dice.aggregate().item())  # gathers from all ranks
uneven = evenly_divisible_all_gather(torch.full((rank + 1,), float(rank)))
values += uneven.tolist()
names = string_list_all_gather([f"rank {rank}"] * (2 - rank))
values.append(float(names == ["rank 0", "rank 0", "rank 1"]))
report(values)
