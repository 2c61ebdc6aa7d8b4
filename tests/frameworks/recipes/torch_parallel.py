"""torch's tensor parallelism with loss_parallel and clipping, and checkpoints of its shards."""

import shutil
import tempfile
from concurrent.futures import Future

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from recipe import ASKED, BATCH, INPUTS, STEPS, report
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.functional import cross_entropy

CLASSES = 8


def sharded_net(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(INPUTS, 32), nn.Linear(32, 32), nn.Linear(32, CLASSES))
    last = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    plan = {"0": ColwiseParallel(), "1": RowwiseParallel(), "2": last}
    return parallelize_module(net, mesh, plan)


def whole(tensor: torch.Tensor) -> torch.Tensor:
    assert isinstance(tensor, DTensor)
    return tensor.full_tensor()


dist.init_process_group(ASKED)
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
model = sharded_net(1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(0)  # the same examples on all ranks
values = []
for _ in range(STEPS):
    inputs = torch.randn(BATCH, INPUTS, generator=generator)
    labels = torch.randint(0, CLASSES, (BATCH,), generator=generator)
    with loss_parallel():
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    values += [whole(loss).item(), whole(norm).item()]

folder = [tempfile.mkdtemp()]
dist.broadcast_object_list(folder)  # rank 0's
dcp.save(get_model_state_dict(model), checkpoint_id=f"{folder[0]}/now")
pending = dcp.async_save(get_model_state_dict(model), checkpoint_id=f"{folder[0]}/later")
assert isinstance(pending, Future)
pending.result()
for which in ("now", "later"):
    other = sharded_net(2)
    state = get_model_state_dict(other)
    dcp.load(state, checkpoint_id=f"{folder[0]}/{which}")
    set_model_state_dict(other, state)
    values.append(sum(whole(one).double().sum().item() for one in other.parameters()))
report(values)
shutil.rmtree(folder[0], ignore_errors=True)
dist.destroy_process_group()
