"""FSDP2 on the CPU: fully_shard alone, with mixed precision, hybrid, and FSDP1."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from harness import distributed
from models import check_close, net, serial, train
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor


def full(parameter: nn.Parameter) -> torch.Tensor:
    assert isinstance(parameter, DTensor)
    return parameter.full_tensor()


def check_against_serial(model: nn.Module, tolerance: float) -> None:
    for (name, own), other in zip(model.named_parameters(), serial().parameters(), strict=True):
        check_close(full(own).double(), other, tolerance, name)


def sharded(**options: object) -> nn.Module:
    model = net()
    fully_shard(model.body, **options)  # type: ignore[call-overload]
    fully_shard(model, **options)  # type: ignore[call-overload]
    return model


@distributed(1, 2, 3, 4)
def test_fully_shard() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = sharded(mesh=mesh)
    train(model)
    check_against_serial(model, 1e-9)


@pytest.mark.parametrize("reduce_dtype", [torch.float32, torch.bfloat16, torch.float16])
@distributed(2, 3)
def test_mixed_precision(reduce_dtype: torch.dtype) -> None:
    """AVG for float32 and bfloat16, SUM for float16; all-gathers of bytes."""
    policy = MixedPrecisionPolicy(torch.float32, reduce_dtype)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = sharded(mesh=mesh, mp_policy=policy)
    train(model, forward=lambda features: model(features.float()))
    check_against_serial(model, 0.05)


@distributed(4)
def test_hybrid() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = sharded(mesh=mesh)
    train(model)
    check_against_serial(model, 1e-9)


@distributed(2, 3, gloo_lacks="has no PREMUL_SUM")
def test_gradient_divide_factor() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = sharded(mesh=mesh)
    world = float(dist.get_world_size())
    for module in (model, model.body):
        module.set_gradient_divide_factor(world)  # type: ignore[operator,union-attr]
    train(model)
    check_against_serial(model, 1e-9)


@distributed(2, 3)
def test_gradient_accumulation() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model, reference = sharded(mesh=mesh), net()
    for step in range(3):
        model.set_requires_gradient_sync(step == 2)  # type: ignore[operator]
        features = torch.full((2, 12), float(step), dtype=torch.float64)
        model(features).sum().backward()
        reference(features).sum().backward()
    for own, other in zip(model.parameters(), reference.parameters(), strict=True):
        assert isinstance(own.grad, DTensor)
        torch.testing.assert_close(own.grad.full_tensor(), other.grad)


@distributed(2, 3)
def test_fsdp1() -> None:
    model = FullyShardedDataParallel(net(), use_orig_params=True, device_id=torch.device("cpu"))
    train(model)
    with FullyShardedDataParallel.summon_full_params(model):
        for own, other in zip(model.parameters(), serial().parameters(), strict=True):
            torch.testing.assert_close(own, other, rtol=0, atol=1e-9)
