"""Tensors of a GPU, on a machine that has none: those with an attribute are taken for such, and
copies of them to the host are counted. Where torch has a GPU the same runs with its tensors.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from rdmacoll import ps
from rdmacoll.ps import flat as flat_module
from rdmacoll.ps.base import staging, tensors

GPU = "cuda" if torch.cuda.is_available() else ""
counted = {"copies": 0, "settled": 0}


def on_gpu(tensor: torch.Tensor) -> Any:
    if GPU:
        return tensor.to(GPU)
    tensor.on_gpu = True  # type: ignore[attr-defined]
    return tensor


def expanded(values: torch.Tensor) -> Any:
    """Four times the same, which lies there once."""
    return values.to(GPU).expand(4, 3) if GPU else on_gpu(values.expand(4, 3))


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    counted["copies"] += 1
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def settle(devices: set[torch.device]) -> None:
    counted["settled"] += len(devices)


def pretend() -> None:
    pretended = {
        "is_staged": lambda tensor: getattr(tensor, "on_gpu", False),
        "empty_pinned": lambda *shape: torch.empty(shape),
        "to_host": to_host,
        "settle": settle,
        "pin": lambda memory, owner: None,
    }
    for module in staging, tensors, flat_module:
        for name, function in pretended.items():
            if hasattr(module, name):
                setattr(module, name, function)


if not GPU:
    pretend()


def case_dense(kv: ps.KV) -> None:
    kv.init("dense of a GPU", on_gpu(torch.ones(3, 5)))
    before = counted["copies"]
    kv.wait(kv.push("dense of a GPU", on_gpu(torch.full((3, 5), 2.0))))
    kv.wait(kv.push_range("dense of a GPU", 0, on_gpu(torch.ones(15))))
    dist.barrier()
    assert GPU or counted["copies"] == before + 2
    out = on_gpu(torch.zeros(3, 5))
    assert kv.pull("dense of a GPU", out) is out
    assert out.unique().tolist() == [1.0 + 3.0 * dist.get_world_size()]
    part = on_gpu(torch.zeros(4))
    assert torch.equal(kv.pull_range("dense of a GPU", 11, part), out.flatten()[11:])
    pending = kv.pull_async("dense of a GPU", on_gpu(torch.zeros(3, 5)))
    first = pending.wait()
    assert first is not None and torch.equal(first, out)
    first.zero_()
    again = pending.wait()  # it is the caller's by then
    assert again is first and not again.any()


def case_strides(kv: ps.KV) -> None:
    """Its memory on the GPU may have any, as it is copied."""
    kv.init("strides", torch.zeros(4, 3))
    values = torch.arange(12.0).reshape(3, 4).t()
    kv.wait(kv.push("strides", on_gpu(values)))
    dist.barrier()
    assert torch.equal(kv.pull("strides"), values * dist.get_world_size())
    out = on_gpu(torch.zeros(3, 4).t())
    assert torch.equal(kv.pull("strides", out).cpu(), values * dist.get_world_size())


def case_elements_that_are_one(kv: ps.KV) -> None:
    """It is refused before anything is pulled."""
    kv.init("expanded", torch.ones(4, 3))
    with pytest.raises(ValueError, match="some of its elements are one"):
        kv.pull_async("expanded", expanded(torch.zeros(3)))
    kv.wait(kv.push("expanded", expanded(torch.ones(3))))  # which is only read
    dist.barrier()
    assert kv.pull("expanded").unique().tolist() == [1.0 + dist.get_world_size()]


def case_rows(kv: ps.KV) -> None:
    kv.init_rows("rows of a GPU", dim=4)
    ids = on_gpu(torch.tensor([5, 6, 7]))
    kv.wait(kv.row_push("rows of a GPU", ids, on_gpu(torch.ones(3, 4))))
    dist.barrier()
    out = on_gpu(torch.zeros(3, 4))
    assert kv.row_pull("rows of a GPU", ids, out) is out
    assert out.unique().tolist() == [dist.get_world_size()]


def trained(name: str, mode: Any, staged: bool) -> list[torch.Tensor]:
    torch.manual_seed(1)
    # One parameter is large enough to be pulled where it is, where it is on the host.
    net = nn.Sequential(nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 2))
    if staged and GPU:
        net.to(GPU)
    for parameter in net.parameters() if staged and not GPU else ():
        on_gpu(parameter.data)
        parameter.on_gpu = True  # type: ignore[attr-defined]
    optimizer = ps.Optimizer(net.parameters(), ps.Adam(lr=1e-2), mode, name=name)
    for step in range(4):
        generator = torch.Generator().manual_seed(step * 10 + dist.get_rank())
        data = torch.randn(8, 300, generator=generator)
        optimizer.zero_grad()
        net(data.to(GPU) if staged and GPU else data).square().sum().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in net.parameters()]


def case_optimizer(kv: ps.KV) -> None:
    """The same as from the host; on a GPU but for roundings."""
    settled = counted["settled"]
    staged = trained("staged", ps.Sync(), staged=True)
    assert GPU or counted["settled"] >= settled + 2 * 4
    for here, there in zip(trained("not staged", ps.Sync(), staged=False), staged, strict=True):
        torch.testing.assert_close(here, there, rtol=1e-3 if GPU else 0, atol=1e-4 if GPU else 0)


def case_embedding(kv: ps.KV) -> None:
    name, rule = f"bag of {dist.get_rank()}", ps.SGD(lr=1.0)
    bag = ps.EmbeddingBag(name, dim=4, mode="sum", optimizer=rule)
    ids = torch.tensor([[1, 2], [2, 3]])
    out = bag(ids.to(GPU) if GPU else ids)
    assert out.device.type == (GPU or "cpu")
    out.sum().backward()
    bag.wait()
    kv.init_rows(name, dim=4, optimizer=rule)
    for row, count in enumerate((1.0, 2.0, 1.0), 1):
        assert kv.row_pull(name, [row]).unique().tolist() == [-count]
