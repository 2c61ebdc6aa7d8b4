"""timm: init_distributed_device_so, a small net under DDP, statistics of BatchNorm distributed."""

import sys
from unittest.mock import MagicMock

import torch
import torch.distributed as dist
from recipe import ASKED, STEPS, report
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

# PyPI's torchvision is built for CUDA. timm imports names of it that this script does not use.
PARTS = ("datasets", "models.feature_extraction", "ops.misc", "transforms", "transforms.functional")
for name in ("torchvision", *(f"torchvision.{part}" for part in PARTS)):
    sys.modules[name] = MagicMock(FrozenBatchNorm2d=type("FrozenBatchNorm2d", (), {}))

from timm import create_model  # noqa: E402
from timm.utils import ModelEmaV3, distribute_bn, reduce_tensor  # noqa: E402
from timm.utils.distributed import init_distributed_device_so  # noqa: E402

found = init_distributed_device_so("cpu", dist_backend=ASKED)
world, rank = found["world_size"], found["global_rank"]
torch.manual_seed(1)
net = create_model("test_resnet", num_classes=4)
model = DistributedDataParallel(net)
average = ModelEmaV3(net, decay=0.9)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(rank)
values = []
for _ in range(STEPS):
    images = torch.rand(4, 3, 64, 64, generator=generator)
    labels = torch.randint(0, 4, (4,), generator=generator)
    loss = cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(net)
    values.append(reduce_tensor(loss.detach(), world).item())
distribute_bn(model, world, reduce=True)
values.append(sum(buffer.double().sum().item() for buffer in net.buffers()))
values.append(sum(one.double().sum().item() for one in average.module.parameters()))
report(values)
dist.destroy_process_group()
