"""Device meshes, DTensor and tensor parallelism over functional collectives; pipelines."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from harness import distributed
from models import FEATURES, net
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from world import backend


def full(tensor: Any) -> torch.Tensor:
    assert isinstance(tensor, DTensor)
    return tensor.full_tensor()


@distributed(1, 2, 3, 4)
def test_redistribute() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    assert dist.get_backend(mesh.get_group()) == backend()
    whole = torch.arange(12 * 24.0).reshape(12, 24)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(rows.full_tensor(), whole)
    columns = rows.redistribute(mesh, [Shard(1)])  # all_to_all
    assert torch.equal(columns.to_local(), whole.chunk(mesh.size(), 1)[mesh.get_rank()])
    assert torch.equal(columns.redistribute(mesh, [Replicate()]).to_local(), whole)


@distributed(2, 3, 4)
def test_uneven_shards() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for rows in (1, 5, 7):
        whole = torch.arange(rows * 3.0).reshape(rows, 3)
        assert torch.equal(distribute_tensor(whole, mesh, [Shard(0)]).full_tensor(), whole)


@distributed(2, 3, 4)
def test_operators() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    left, right = torch.randn(12, 24).double(), torch.randn(24, 6).double()
    product = distribute_tensor(left, mesh, [Shard(1)]) @ distribute_tensor(right, mesh, [Shard(0)])
    torch.testing.assert_close(full(product), left @ right)
    rows = distribute_tensor(left, mesh, [Shard(0)])
    torch.testing.assert_close(full(rows.mean()), left.mean())
    torch.testing.assert_close(full(rows.max()), left.max())


@distributed(2, 3, 4)
def test_tensor_parallel() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    reference = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)).double()
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)).double()
    model = parallelize_module(plain, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    features = torch.randn(4, 12, dtype=torch.float64)
    out, expected = model(features), reference(features)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    expected.sum().backward()
    for own, other in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(full(own.grad), other.grad)


@distributed(2)
def test_sequence_parallel() -> None:
    mesh = init_device_mesh("cpu", (2,))
    plain, reference = (nn.Sequential(nn.LayerNorm(12)).double() for _ in range(2))
    model = parallelize_module(plain, mesh, {"0": SequenceParallel()})
    features = torch.randn(2, 6, 12, dtype=torch.float64)
    out = model(distribute_tensor(features, mesh, [Shard(1)]))
    torch.testing.assert_close(out.full_tensor(), reference(features))


@distributed(4)
def test_mesh_of_two_dimensions() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    rank = dist.get_rank()
    for name, ranks in (("data", [rank % 2, rank % 2 + 2]), ("model", [rank & 2, (rank & 2) + 1])):
        group = mesh[name].get_group()
        assert dist.get_process_group_ranks(group) == ranks
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == sum(ranks)


@distributed(2, 3, 4)
def test_pipeline_schedules() -> None:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    layers = [nn.Linear(FEATURES, FEATURES).double() for _ in range(world)]
    features = torch.randn(8, FEATURES, dtype=torch.float64)
    expected = nn.Sequential(*layers)(features)
    for schedule_type in (ScheduleGPipe, Schedule1F1B):
        layers[rank].zero_grad()
        stage = PipelineStage(layers[rank], rank, world, torch.device("cpu"))
        schedule = schedule_type(
            stage, 4, loss_fn=lambda out, target: (out - target).square().sum()
        )
        if rank == 0:
            schedule.step(features)
        elif rank == world - 1:
            out = schedule.step(target=torch.zeros_like(expected))
            torch.testing.assert_close(out, expected)
        else:
            schedule.step()
        assert layers[rank].weight.grad is not None


@distributed(2)
def test_sharding_a_module() -> None:
    from torch.distributed.tensor import distribute_module

    mesh = init_device_mesh("cpu", (2,))
    model, reference = distribute_module(net(), mesh), net()
    for own, other in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.equal(full(own), other)
