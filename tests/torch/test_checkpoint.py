"""torch.distributed.checkpoint: save, load into another layout, save in the background."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from harness import distributed
from models import net, train
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP


def common_folder() -> str:
    """One that rank 0 makes and all use."""
    names = [tempfile.mkdtemp(prefix="checkpoint") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names, 0)
    assert names[0]
    return names[0]


def zeros_like(state: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.zeros_like(tensor) for name, tensor in state.items()}


@distributed(1, 2, 3)
def test_save_and_load() -> None:
    model = DDP(net())
    train(model)
    state: dict[str, Any] = get_model_state_dict(model)
    folder = common_folder()
    checkpoint.save(state, checkpoint_id=folder)
    loaded = zeros_like(state)
    checkpoint.load(loaded, checkpoint_id=folder)
    assert all(torch.equal(loaded[name], state[name]) for name in state)


@distributed(2, 4)
def test_resharding() -> None:
    """Written by fully_shard, read into replicated tensors."""
    model = net()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    train(model)
    folder = common_folder()
    checkpoint.save(get_model_state_dict(model), checkpoint_id=folder)
    loaded = zeros_like(net().state_dict())
    checkpoint.load(loaded, checkpoint_id=folder)
    parameters: dict[str, Any] = dict(model.named_parameters())
    for name, parameter in parameters.items():
        assert torch.equal(loaded[name], parameter.full_tensor()), name


@distributed(2)
def test_async_save() -> None:
    """The save runs in a thread, on a group of its own, while the training goes on."""
    background = dist.new_group()
    model = DDP(net())
    train(model)
    trained: dict[str, Any] = get_model_state_dict(model)
    state = {name: tensor.clone() for name, tensor in trained.items()}
    folder = common_folder()
    saved = checkpoint.async_save(
        get_model_state_dict(model), checkpoint_id=folder, process_group=background
    )
    train(model)
    saved.result()  # type: ignore[union-attr]
    loaded = zeros_like(state)
    checkpoint.load(loaded, checkpoint_id=folder)
    assert all(torch.equal(loaded[name], state[name]) for name in state)
