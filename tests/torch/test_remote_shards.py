"""Sharded states: some ranks train and publish, the others read, whole or into shards of theirs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from models import FEATURES, net
from test_remote import LACKS
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from rdmacoll import remote

READERS = {3: 1, 4: 1, 5: 2, 6: 2}  # the last ranks of a world of this size
WORLDS = (3, 4, 5, 6)  # 2 + 1, 3 + 1, 3 + 2, 4 + 2
SHAPES = {
    "rows": (7, 3),
    "columns": (3, 8),
    "one": (1,),
    "none": (5, 0),
    "line": (5,),
    "big": (257, 63),
}


def split() -> tuple[int, int, bool]:
    """How many publish, how many read, and whether this rank reads."""
    rank, world = me()
    trainers = world - READERS[world]
    return trainers, world - trainers, rank >= trainers


def meshes(*shape: int) -> tuple[DeviceMesh, DeviceMesh]:
    """That of those who publish, of this shape, and that of the readers. Made on all ranks."""
    trainers, _, _ = split()
    ranks = torch.arange(me()[1])
    return (
        DeviceMesh("cpu", ranks[:trainers].view(shape or (-1,))),
        DeviceMesh("cpu", ranks[trainers:]),
    )


class Holder(nn.Module):
    """Its state are these tensors."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)


def filled(value: float, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    return {name: torch.full(shape, value, dtype=dtype) for name, shape in SHAPES.items()}


def sharded(
    whole: dict[str, torch.Tensor], mesh: DeviceMesh, **placements: list[Placement]
) -> dict[str, torch.Tensor]:
    """By rows, where nothing else is said."""
    rows: list[Placement] = [Shard(0)] * mesh.ndim
    return {
        name: distribute_tensor(tensor, mesh, placements.get(name, rows))
        for name, tensor in whole.items()
    }


def local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def assert_holds(module: nn.Module, whole: dict[str, torch.Tensor]) -> None:
    for name, tensor in module.state_dict().items():
        got = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        assert torch.equal(got, whole[name]), name


def numbered(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).view(shape)


@contextmanager
def closing(published: remote.Publication) -> Iterator[None]:
    """Until all are done with it. The name is free again afterwards."""
    yield
    dist.barrier()
    published.close()
    dist.barrier()


def read_until(last: int, there: remote.Subscription, module: nn.Module) -> None:
    """Whole, and into the module, in turn; each must be of one version."""
    version = 0
    while version < last:
        for name, tensor in there.read().items():
            assert (tensor == there.version).all(), (name, there.version)
        version = there.load_into(module)
        assert version == there.version
        for name, tensor in module.state_dict().items():
            assert (local(tensor) == version).all(), (name, version)


@pytest.mark.parametrize("in_step", [True, False])
@distributed(*WORLDS, gloo_lacks=LACKS)
def test_readers_read_whole_versions(in_step: bool) -> None:
    """While the others publish one after the other. Half of them, then, is surely seen."""
    half, last = 20, 40
    theirs, ours = meshes()
    if not split()[2]:
        state = sharded(filled(0), theirs, columns=[Shard(1)], one=[Replicate()])
        state["plain"] = torch.zeros(3, 3)
        published = remote.publish(state, "counted")
        for version in range(1, last + 1):
            for tensor in state.values():
                local(tensor).fill_(version)
            assert published.update() == version == published.version
            if in_step:
                dist.barrier(theirs.get_group())
            time.sleep(0.003 * me()[0])  # what a step takes, on one longer than on the other
            if version == half:
                dist.barrier()
        with closing(published):
            pass
        return
    module = Holder(sharded(filled(0), ours, rows=[Shard(1)], columns=[Replicate()]))
    module.register_buffer("plain", torch.zeros(3, 3))
    there = remote.subscribe("counted", on=0)
    read_until(half, there, module)
    dist.barrier()
    read_until(last, there, module)
    with pytest.raises(TimeoutError, match=r"newer than 40 came whole .*: rank 0 had none"):
        there.read(newer=True, timeout=0.05)
    dist.barrier()
    dist.barrier()
    with pytest.raises(remote.RevokedError, match="has taken 'counted' back"):
        there.read()


PLACEMENTS: list[list[Placement]] = [
    [Shard(0), Shard(1)],
    [Shard(1), Shard(0)],
    [Shard(0), Shard(0)],
    [Shard(0), Replicate()],
    [Replicate(), Shard(1)],
    [Replicate(), Replicate()],
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@distributed(6, gloo_lacks=LACKS)
def test_placements_on_meshes_of_two_dimensions(dtype: torch.dtype) -> None:
    theirs, ours = meshes(2, 2)
    wholes = {f"{name}{i}": numbered(SHAPES[name]) % 251 for name in SHAPES for i in range(6)}
    ways = {name: PLACEMENTS[int(name[-1])] for name in wholes}
    if not split()[2]:
        ways |= {name: [Shard(0), Replicate()] for name in wholes if wholes[name].ndim == 1}
        state = sharded(wholes, theirs, **ways)
        published = remote.publish(state, "two", dtype=dtype)
        published.update()
        with closing(published):
            pass
        return
    there = remote.subscribe("two", on=3)  # any of them
    state = there.read(newer=True)
    for name, whole in wholes.items():
        assert state[name].dtype == dtype
        assert torch.equal(state[name].float(), whole), name
    for placement in (Shard(0), Shard(1), Replicate()):
        ways = {name: [placement if wholes[name].ndim == 2 else Shard(0)] for name in wholes}
        module = Holder(sharded({n: torch.zeros_like(w) for n, w in wholes.items()}, ours, **ways))
        assert there.load_into(module) == 1
        assert_holds(module, wholes)
    dist.barrier()
    dist.barrier()


@distributed(3, 5, 6, gloo_lacks=LACKS)
def test_fsdp_to_fsdp() -> None:
    trainers, _, reads = split()
    theirs, ours = meshes()
    model = net()
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fully_shard(model.body, mesh=ours if reads else theirs)
    fully_shard(model, mesh=ours if reads else theirs)
    if not reads:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        published = remote.publish(model.state_dict(), "model")
        published.update()
        model(torch.ones(2, FEATURES).double()).sum().backward()
        optimizer.step()
        trained = {n: p.full_tensor() for n, p in model.state_dict().items()}
        published.update(model.state_dict())
        dist.broadcast_object_list([trained], src=0)
        with closing(published):
            pass
        return
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(-1)
    there = remote.subscribe("model", on=trainers - 1)
    got: list[dict[str, torch.Tensor]] = [{}]
    dist.broadcast_object_list(got, src=0)
    assert there.load_into(model, newer=True) == 2
    assert not torch.equal(got[0]["head.weight"], expected["head.weight"])
    assert_holds(model, got[0])
    model(torch.ones(2, FEATURES).double()).sum().backward()  # it is as usable as before
    plain = net()
    assert there.load_into(plain) == 2
    assert_holds(plain, got[0])
    dist.barrier()
    dist.barrier()


@distributed(6, gloo_lacks=LACKS)
def test_fsdp_over_tensor_parallelism() -> None:
    """Its rows are cut by the inner dimension first; some tensors are on a part of the mesh."""
    trainers, _, reads = split()

    def net() -> nn.Sequential:
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8), nn.LayerNorm(8))

    def cut(model: nn.Sequential, ranks: torch.Tensor) -> None:
        mesh = DeviceMesh("cpu", ranks, mesh_dim_names=("dp", "tp"))
        parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
        fully_shard(model, mesh=mesh["dp"])

    model, expected = net(), net().state_dict()
    if not reads:
        cut(model, torch.arange(trainers).view(2, 2))
        published = remote.publish(model.state_dict(), "both")
        published.update()
        with closing(published):
            pass
        return
    there = remote.subscribe("both", on=0)
    for name, tensor in there.read(newer=True).items():
        assert torch.equal(tensor, expected[name]), name
    for shape in ((2, 1), (1, 2)):
        other = net()
        nn.utils.vector_to_parameters(torch.full((10_000,), -1.0), other.parameters())
        cut(other, torch.arange(trainers, trainers + 2).view(shape))
        assert there.load_into(other) == 1
        assert_holds(other, expected)
    dist.barrier()
    dist.barrier()


@distributed(5, gloo_lacks=LACKS)
def test_a_plain_state_into_a_sharded_module() -> None:
    _, ours = meshes()
    whole = {name: numbered(shape) for name, shape in SHAPES.items()}
    if me()[0] == 0:
        published = remote.publish(whole, "whole")
        published.update()
        with closing(published):
            pass
        return
    if split()[2]:
        module = Holder(sharded(filled(0), ours))
        remote.subscribe("whole", on=0).load_into(module, newer=True)
        assert_holds(module, whole)
    dist.barrier()
    dist.barrier()


@distributed(3, dies=(1,), gloo_lacks=LACKS)
def test_the_death_of_one_who_publishes() -> None:
    theirs, _ = meshes()
    if not split()[2]:
        published = remote.publish(sharded(filled(1), theirs), "mortal")
        published.update()
        dist.barrier()
        if me()[0] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return
    there = remote.subscribe("mortal", on=0)
    there.read()
    dist.barrier()
    end = time.monotonic() + 20
    with pytest.raises(remote.PeerError, match="rank 1"):
        while time.monotonic() < end:
            there.read()
    with pytest.raises(remote.PeerError, match="rank 1"):
        remote.subscribe("mortal", on=0, timeout=5)


@distributed(3, gloo_lacks=LACKS)
def test_what_cannot_be_published() -> None:
    theirs, _ = meshes()
    if split()[2]:
        dist.barrier()
        dist.barrier()
        there = remote.subscribe("right", on=0)
        wrong = filled(0)
        del wrong["rows"]
        with pytest.raises(ValueError, match="other names than were published: .'rows'"):
            there.load_into(Holder(wrong))
        wrong["rows"] = torch.zeros(7, 4)
        with pytest.raises(ValueError, match=r"'rows' has shape \(7, 4\) in the module; \(7, 3\)"):
            there.load_into(Holder(wrong))
        with pytest.raises(
            TimeoutError, match="newer than 0 came whole .*: rank 0 had 1, rank 1 had none"
        ):
            there.read(timeout=0.05)
        dist.barrier()
        dist.barrier()
        return
    state = sharded(filled(1), theirs)
    sums = DTensor.from_local(torch.ones(4), theirs, [Partial()])
    with pytest.raises(ValueError, match="'sums'.*redistribute"):
        remote.publish({**state, "sums": sums}, "wrong")
    if me()[0] == 1:
        remote.expose(remote.empty(3), "taken")
    with pytest.raises(ValueError, match="name='taken' is exposed already"):
        remote.publish(state, "taken")
    before = remote.stats()["exposures"]
    with pytest.raises(ValueError, match="other names on rank 1"):
        remote.publish(state | ({"more": torch.ones(1)} if me()[0] == 1 else {}), "wrong")
    with pytest.raises(ValueError, match="not made up"):
        remote.publish({**state, "rows": state["rows"] if me()[0] else torch.ones(7, 3)}, "wrong")
    assert remote.stats()["exposures"] == before == me()[0], "and nothing is left of it"
    dist.barrier()
    published = remote.publish(state, "right")
    with pytest.raises(ValueError, match="publishes a part of 'right' itself"):
        remote.subscribe("right", on=1 - me()[0])
    if me()[0] == 0:
        published.update()
    else:
        with pytest.raises(ValueError, match=r"state\['rows'\] is .*Shard.* was published"):
            published.update({**state, "rows": torch.ones(7, 3)})
        with pytest.raises(ValueError, match="version 1 of 'right' failed on this rank"):
            published.update(state)
    dist.barrier()
    with closing(published):
        pass
