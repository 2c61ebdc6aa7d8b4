"""trace_placement(): what it places, what it cannot and says so, and that results stay the same."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy
import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from models import batch, net, train
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

import rdmacoll

LACKS = "has no heap"
COUNT = 5_003


def ranks_sum(turn: int) -> int:
    return sum(rank + turn for rank in range(dist.get_world_size()))


def ddp(**options: bool) -> nn.Module:
    return DDP(net(), **options)  # type: ignore[arg-type]


def fsdp() -> nn.Module:
    model = net()
    fully_shard(model.body)
    return fully_shard(model)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "ddp": ddp,
    "ddp_bucket_view": lambda: ddp(gradient_as_bucket_view=True),
    "ddp_static_graph": lambda: ddp(static_graph=True, gradient_as_bucket_view=True),
    "fsdp": fsdp,
}


@pytest.mark.parametrize("kind", MODELS)
@distributed(2, 3, gloo_lacks=LACKS)
def test_training_is_the_same(kind: str) -> None:
    model, ordinary = MODELS[kind](), MODELS[kind]()
    with rdmacoll.trace_placement(model, least_bytes=512) as placement:
        losses = train(model)
    assert losses == train(ordinary)
    for own, other in zip(model.parameters(), ordinary.parameters(), strict=True):
        own, other = (getattr(p, "_local_tensor", p) for p in (own, other))
        assert torch.equal(own, other)
    report = placement.report()
    if kind == "fsdp":
        assert report.served, report
    else:
        assert sum(one.bytes for one in report.placed) >= sum(p.nbytes for p in model.parameters())
    if kind in ("ddp_bucket_view", "ddp_static_graph"):
        assert all(rdmacoll.in_heap(p.grad) for p in model.parameters() if p.grad is not None)
        assert "gradient of module." in str(report)


@distributed(2, gloo_lacks=LACKS)
def test_fsdp_buffers_are_made_in_the_heap() -> None:
    model = fsdp()
    features = batch(0)[0]
    with rdmacoll.trace_placement(model, least_bytes=512) as placement, torch.no_grad():
        model(features)
        placement.step()
        before = rdmacoll.memory_stats()["allocations"]
        model(features)
        assert rdmacoll.memory_stats()["allocations"] > before


@distributed(1, 2, 3, gloo_lacks=LACKS)
def test_tensors_of_the_user() -> None:
    rank, _ = me()
    kept, small = torch.empty(COUNT), torch.zeros(3)
    view = kept[7:9]
    in_heap: list[bool] = []
    with rdmacoll.trace_placement(least_bytes=1000) as placement:
        for turn in range(4):
            kept.fill_(rank + turn)
            dist.all_reduce(kept)
            assert view.tolist() == [ranks_sum(turn)] * 2
            gone = torch.full((2 * COUNT,), float(rank + turn))
            in_heap.append(rdmacoll.in_heap(gone))
            thread = threading.Thread(target=dist.all_reduce, args=(gone,))
            thread.start()
            thread.join()
            assert gone[-1] == ranks_sum(turn)
            dist.all_reduce(small)
            del gone, thread
            placement.step()
            assert rdmacoll.in_heap(kept) and rdmacoll.in_heap(view)
    assert in_heap == [False, True, True, True]
    assert not rdmacoll.in_heap(torch.empty(2 * COUNT)), "nothing is served afterwards"
    report = placement.report()
    assert [(one.bytes, one.operations) for one in report.placed] == [(4 * COUNT, 4)]
    assert report.freed == {8 * COUNT: 4} and report.served == [8 * COUNT]
    assert [one.reason for one in report.left] == ["it is smaller than least_bytes=1000"]


# FSDP1 frees its buffers so, and they are allocated again by the allocator that made them: torch's
# own, until the process's first context.
@distributed(1, fresh=True, gloo_lacks=LACKS)
def test_tensors_that_are_resized() -> None:
    before = torch.ones(COUNT)
    with rdmacoll.trace_placement(least_bytes=1) as placement:
        within = torch.ones(3 * COUNT)
        for _ in range(3):
            for tensor in (before, within):
                tensor.untyped_storage().resize_(tensor.nbytes)
                dist.all_reduce(tensor)
                placement.step()
                tensor.untyped_storage().resize_(0)
            placement.step()
        for tensor in (before, within):
            tensor.untyped_storage().resize_(tensor.nbytes)
        assert rdmacoll.in_heap(within) and not rdmacoll.in_heap(before)
        placement.step()
        report = placement.report()
    assert [one.bytes for one in report.placed] == [within.nbytes]
    assert "make it in the context" in report.left[0].reason and len(report.left) == 1


# As they are alive at the end of each iteration, they are moved at first; then they are served.
@distributed(1, gloo_lacks=LACKS)
def test_tensors_that_live_for_one_iteration() -> None:
    with rdmacoll.trace_placement(least_bytes=1) as placement:
        for _ in range(4):
            tensor = torch.zeros(COUNT)
            was_in_heap = rdmacoll.in_heap(tensor)
            dist.all_reduce(tensor)
            placement.step()
            assert rdmacoll.in_heap(tensor)
    assert was_in_heap


@distributed(1, gloo_lacks=LACKS)
def test_what_cannot_be_moved_is_told() -> None:
    array = numpy.ones(COUNT, numpy.float32)
    of_numpy, exported = torch.from_numpy(array), torch.ones(COUNT)
    seen = exported.numpy()
    shared = torch.ones(COUNT).share_memory_()
    with rdmacoll.trace_placement(least_bytes=1) as placement:
        for tensor in (of_numpy, exported, shared):
            dist.all_reduce(tensor)
    of_numpy += 1
    exported += 1
    assert array.sum() == seen.sum() == 2 * COUNT
    assert not any(rdmacoll.in_heap(tensor) for tensor in (of_numpy, exported, shared))
    report = placement.report()
    assert not report.placed
    assert sorted(one.reason[:21] for one in report.left) == sorted(
        ["its memory is NumPy's", "its memory is NumPy's", "torch shares it with "]
    )
    assert str(report).count("19.54 KB  a tensor that is not the model's: ") == 3


@distributed(2, gloo_lacks=LACKS)
def test_what_is_in_flight_waits() -> None:
    rank, _ = me()
    data, token = torch.full((COUNT,), 5.0 * rank), torch.zeros(1)
    with rdmacoll.trace_placement(least_bytes=1000) as placement:
        if rank == 0:
            work = dist.irecv(data, 1)
            placement.step()
            assert not rdmacoll.in_heap(data)
            assert "in flight" in placement.report().left[0].reason
            dist.send(token, 1)
            assert work is not None
            work.wait()
            assert data.sum() == 5 * COUNT
        else:
            dist.recv(token, 0)
            dist.send(data, 0)
    assert rdmacoll.in_heap(data) and data.sum() == 5 * COUNT


@distributed(1, gloo_lacks=LACKS)
def test_wrong_use_and_its_end() -> None:
    for least in (0, -5):
        with (
            pytest.raises(ValueError, match=f"least_bytes={least}; give 1 or more"),
            rdmacoll.trace_placement(least_bytes=least),
        ):
            pass
    with (
        pytest.raises(TypeError, match="takes a module, not a Tensor"),
        rdmacoll.trace_placement(torch.zeros(3)),  # type: ignore[arg-type]
    ):
        pass
    with (
        pytest.raises(RuntimeError, match="under way already"),
        rdmacoll.trace_placement(),
        rdmacoll.trace_placement(),
    ):
        pass
    model, tensor = nn.Linear(3, 3), torch.zeros(COUNT)
    with pytest.raises(KeyError), rdmacoll.trace_placement(model):
        dist.all_reduce(tensor)
        raise KeyError
    assert not model._forward_pre_hooks and not rdmacoll.in_heap(tensor)
    with rdmacoll.trace_placement(model) as placement:
        pass
    assert placement.report().left == placement.report().placed == []


@distributed(1, gloo_lacks=LACKS)
def test_tracing_keeps_nothing_alive() -> None:
    with rdmacoll.registered_memory(1), rdmacoll.trace_placement():
        tensor = torch.zeros(COUNT)
        dist.all_reduce(tensor)
        gc.collect()
        before = rdmacoll.memory_stats()["allocated_bytes"]
        del tensor
        assert rdmacoll.memory_stats()["allocated_bytes"] < before


NO_HEAP = """
import rdmacoll, torch, torch.distributed as dist
dist.init_process_group("rdma", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.zeros(1 << 20)
with rdmacoll.trace_placement() as placement:
    dist.all_reduce(tensor)
print(rdmacoll.in_heap(tensor), placement.report().left[0].reason)
dist.destroy_process_group()
"""


def test_without_a_heap() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NO_HEAP],
        env=os.environ | {"RDMACOLL_HEAP_BYTES": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stdout.startswith("False the heap has no room for it"), ran.stdout + ran.stderr
