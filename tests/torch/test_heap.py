"""Tensors in the heap: how they get there, what operations on them give, and how memory returns.

That nothing is copied shows in the engine's own tests (tests/unit/engine/heap_test.cc).
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import ALL_WORLDS, distributed
from models import check_same, net, serial, train
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

import rdmacoll

LACKS = "has no heap"
COUNT = 100_003  # several messages of every plan, and none of a round size


def values(rank: int, count: int = COUNT) -> torch.Tensor:
    return (torch.arange(count) % 97 + rank).to(torch.float32)


def placed(tensor: torch.Tensor) -> torch.Tensor:
    copy = rdmacoll.empty(tuple(tensor.shape), dtype=tensor.dtype)
    assert rdmacoll.in_heap(copy)
    return copy.copy_(tensor)


# On all ranks, and on every other one: where a tensor lies is each rank's own affair.
PLACEMENTS: dict[str, Any] = {
    "everywhere": placed,
    "on_some": lambda tensor: placed(tensor) if dist.get_rank() % 2 == 0 else tensor.clone(),
}


@pytest.mark.parametrize("where", PLACEMENTS)
@distributed(*ALL_WORLDS, gloo_lacks=LACKS)
def test_collectives(where: str) -> None:
    rank, world = me()
    place = PLACEMENTS[where]
    expected = sum(values(r) for r in range(world))

    data = place(values(rank))
    dist.all_reduce(data)
    assert torch.equal(data, expected)

    shares = place(torch.zeros(world * COUNT))
    dist.all_gather_into_tensor(shares, place(values(rank)))
    assert torch.equal(shares, torch.cat([values(r) for r in range(world)]))

    mine = shares.narrow(0, rank * COUNT, COUNT)  # in place, as FSDP has it
    mine.copy_(values(rank + 5))
    dist.all_gather_into_tensor(shares, mine)
    assert torch.equal(shares, torch.cat([values(r + 5) for r in range(world)]))

    part = place(torch.zeros(COUNT))
    dist.reduce_scatter_tensor(part, place(torch.cat([values(rank + r) for r in range(world)])))
    assert torch.equal(part, sum(values(r + rank) for r in range(world)))

    back = place(torch.zeros(world * COUNT))
    sent = place(torch.cat([values(7 * rank + r) for r in range(world)]))
    dist.all_to_all_single(back, sent)
    assert torch.equal(back, torch.cat([values(7 * r + rank) for r in range(world)]))

    for root in range(world):
        data = place(values(rank))
        dist.broadcast(data, root)
        assert torch.equal(data, values(root))
        data = place(values(rank))
        dist.reduce(data, root)
        if rank == root:
            assert torch.equal(data, expected)


# The source of a work is read when it is done: its buffers may be written at once.
@distributed(2, 3, 4, gloo_lacks=LACKS)
def test_buffers_are_free_when_the_work_is_done() -> None:
    rank, world = me()
    data = placed(values(rank))
    for turn in range(30):
        data.copy_(values(rank + turn))
        dist.all_reduce(data)
        total = data[0].item()
        data.fill_(-1)
        assert total == sum(r + turn for r in range(world))


@distributed(1, 2, gloo_lacks=LACKS)
def test_place_moves_storages() -> None:
    rank, world = me()
    whole = values(rank, 20_000).reshape(100, 200)
    view = whole[3]
    assert rdmacoll.place_(whole) is whole
    assert rdmacoll.in_heap(whole) and rdmacoll.in_heap(view)
    assert torch.equal(whole, values(rank, 20_000).reshape(100, 200))
    view.zero_()
    assert whole[3].sum() == 0

    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    model(torch.ones(4, 8)).sum().backward()
    rdmacoll.place_(model)
    held = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters())]
    assert all(rdmacoll.in_heap(tensor) for tensor in held if tensor is not None)


@distributed(1, gloo_lacks=LACKS)
def test_what_cannot_be_placed_is_refused() -> None:
    shared = torch.zeros(10).share_memory_()
    pair = nn.ParameterDict({"a": torch.zeros(10), "b": torch.zeros(3)})
    pair["b"].data = shared
    with pytest.raises(ValueError, match="shape .10,. is in memory that torch shares"):
        rdmacoll.place_(pair)
    assert not rdmacoll.in_heap(pair["a"]), "nothing is moved if not all can be"
    with pytest.raises(ValueError, match="only strided tensors on the CPU"):
        rdmacoll.place_(torch.zeros(3).to_sparse())
    with pytest.raises(ValueError, match="only strided tensors on the CPU"):
        rdmacoll.place_(torch.zeros(3, device="meta"))
    with pytest.raises(TypeError, match="takes a tensor or a module, not a list"):
        rdmacoll.place_([torch.zeros(3)])  # type: ignore[type-var]
    with pytest.raises(ValueError, match=r"size=\(2, -1\) has a negative dimension"):
        rdmacoll.empty(2, -1)
    with (
        pytest.raises(ValueError, match="least_bytes=0; give 1 or more"),
        rdmacoll.registered_memory(0),
    ):
        pass


@distributed(1, gloo_lacks=LACKS)
def test_making_tensors() -> None:
    assert rdmacoll.empty(2, 3).shape == rdmacoll.empty((2, 3)).shape == (2, 3)
    assert rdmacoll.empty(3, dtype=torch.int16).dtype == torch.int16
    assert rdmacoll.empty(3).dtype == torch.get_default_dtype()
    dirty = rdmacoll.empty(1000).fill_(5)
    del dirty
    zeros = rdmacoll.zeros(1000, requires_grad=True)
    assert zeros.requires_grad and zeros.sum() == 0 and rdmacoll.in_heap(zeros)
    assert rdmacoll.empty(0).numel() == 0


@distributed(1, gloo_lacks=LACKS)
def test_memory_comes_back() -> None:
    gc.collect()
    before = rdmacoll.memory_stats()
    tensor = rdmacoll.zeros(1000)
    kept = tensor[10:20]
    assert rdmacoll.memory_stats()["allocated_bytes"] == before["allocated_bytes"] + 4032
    del tensor
    assert kept.sum() == 0
    assert rdmacoll.memory_stats()["allocated_bytes"] == before["allocated_bytes"] + 4032
    del kept
    after = rdmacoll.memory_stats()
    assert after["allocated_bytes"] == before["allocated_bytes"]
    assert after["allocations"] == before["allocations"] + 1
    assert after["capacity_bytes"] >= after["reserved_bytes"] >= after["peak_allocated_bytes"]


@distributed(1, gloo_lacks=LACKS)
def test_within_registered_memory() -> None:
    with rdmacoll.registered_memory(1 << 16):
        large, small = torch.empty(1 << 14), torch.empty(100)
        result = large + 1
        from_thread: list[torch.Tensor] = []
        thread = threading.Thread(target=lambda: from_thread.append(torch.empty(1 << 14)))
        thread.start()
        thread.join()
        with rdmacoll.registered_memory(64):
            assert rdmacoll.in_heap(torch.empty(100))
        assert not rdmacoll.in_heap(torch.empty(100))
    assert all(rdmacoll.in_heap(tensor) for tensor in (large, result, *from_thread))
    assert not rdmacoll.in_heap(small)
    assert not rdmacoll.in_heap(torch.empty(1 << 14))


@distributed(2, 3, gloo_lacks=LACKS)
def test_ddp_in_registered_memory() -> None:
    with rdmacoll.registered_memory(1):
        model = DDP(net(), gradient_as_bucket_view=True)
        train(model)
    check_same(model.module, serial())
    gradients = [parameter.grad for parameter in model.parameters()]
    assert all(grad is not None and rdmacoll.in_heap(grad) for grad in gradients)


@distributed(2, gloo_lacks=LACKS)
def test_fsdp_buffers_by_the_backends_own_allocator() -> None:
    before = rdmacoll.memory_stats()["allocations"]
    model = fully_shard(net())
    model.set_allocate_memory_from_process_group_for_comm(True)
    train(model)
    assert rdmacoll.memory_stats()["allocations"] > before


@distributed(1, 2, gloo_lacks=LACKS)
def test_the_backends_face() -> None:
    backend: Any = dist.group.WORLD._get_backend(torch.device("cpu"))  # type: ignore[union-attr]
    assert backend.supports_tensor_alloc(torch.device("cpu"))
    tensor = backend.allocate_tensor(1000, dtype=torch.bfloat16, device=torch.device("cpu"))
    assert tensor.shape == (1000,) and tensor.dtype == torch.bfloat16
    assert rdmacoll.in_heap(tensor)


@distributed(2, gloo_lacks=LACKS)
def test_a_tensor_in_flight_is_not_placed() -> None:
    rank = dist.get_rank()
    tensor = torch.zeros(100_000)
    if rank == 0:
        work = dist.irecv(tensor, 1)
        assert work is not None
        with pytest.raises(ValueError, match="in flight.*wait"):
            rdmacoll.place_(tensor)
        dist.barrier()
        work.wait()
        assert tensor.eq(1).all()
        rdmacoll.place_(tensor)
        assert rdmacoll.in_heap(tensor) and tensor.eq(1).all()
    else:
        dist.barrier()
        dist.send(torch.ones(100_000), 0)


# As with share_memory_(): the child sees the parent's tensor itself, and its own new ones are
# ordinary memory, so it cannot disturb the parent's heap.
@distributed(1, gloo_lacks=LACKS)
def test_a_forked_child() -> None:
    tensor = rdmacoll.zeros(100)
    before = rdmacoll.memory_stats()["allocated_bytes"]
    child = os.fork()
    if child == 0:
        own = rdmacoll.zeros(100)
        good = tensor.sum().item() == 0 and not rdmacoll.in_heap(own)
        tensor[0] = 5
        del own
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tensor[0] == 5
    assert rdmacoll.memory_stats()["allocated_bytes"] == before


FULL = """
import rdmacoll, torch
kept = [rdmacoll.zeros(1 << 20) for _ in range(3)]
print([rdmacoll.in_heap(tensor) for tensor in kept], rdmacoll.memory_stats()["refused"])
with rdmacoll.registered_memory():
    print(rdmacoll.in_heap(torch.zeros(1 << 20)))
del kept[0]
print(rdmacoll.in_heap(rdmacoll.zeros(1 << 20)))
"""


def run(script: str, heap_bytes: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"RDMACOLL_HEAP_BYTES": str(heap_bytes)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_full_heap_warns_once_and_goes_on() -> None:
    ran = run(FULL, 8 << 20)
    assert ran.stdout.splitlines() == ["[True, True, False] 1", "False", "True"]
    assert ran.stderr.count("warning") == 1
    assert "the heap of 8388608 bytes has no room for 4194304 more" in ran.stderr


def test_without_a_heap_everything_is_ordinary() -> None:
    ran = run(FULL, 0)
    assert ran.stdout.splitlines() == ["[False, False, False] 0", "False", "False"]
    assert ran.stderr == ""


def test_tensors_outlive_their_groups() -> None:
    ran = run(
        """
import rdmacoll, torch, torch.distributed as dist
for turn in range(3):
    dist.init_process_group("rdma", store=dist.HashStore(), rank=0, world_size=1)
    if turn == 0:
        tensor = rdmacoll.zeros(1 << 20)
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    assert rdmacoll.in_heap(tensor) and tensor.sum() == 0
print("good")
""",
        64 << 20,
    )
    assert ran.stdout == "good\n", ran.stderr
