"""Ranks die, and the others go on in a smaller group, in the processes they are."""

from __future__ import annotations

import datetime
import os
import signal
import threading
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from cases import me
from failing import raised, stay_away
from harness import distributed
from models import net, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import rdmacoll

SECOND = datetime.timedelta(seconds=1)
OURS = "has no way to a smaller group"


def die_soon(after_s: float = 0.05) -> None:
    threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGKILL)).start()


def reduce_until_it_raises(group: dist.ProcessGroup | None = None) -> RuntimeError:
    tensor = torch.ones(1_000_000)
    with pytest.raises(RuntimeError) as caught:
        while True:
            dist.all_reduce(tensor.fill_(1), group=group)
    return caught.value


def sums_are_exact(group: dist.ProcessGroup | None = None) -> None:
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    for count in (1, 1000, 1_000_000):
        tensor = torch.full((count,), float(rank + 1))
        dist.all_reduce(tensor, group=group)
        assert torch.equal(tensor, torch.full((count,), size * (size + 1) / 2))


def step_is_exact(group: dist.ProcessGroup | None = None) -> None:
    """A step of DDP on integers, whose mean over the ranks is exact."""
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    layer = nn.Linear(4, 1, bias=False)
    nn.init.ones_(layer.weight)
    model = DDP(layer, process_group=group)
    model(torch.full((1, 4), float(size * (rank + 1)))).sum().backward()
    assert torch.equal(layer.weight.grad, torch.full((1, 4), size * (size + 1) / 2))


@distributed(2, 3, 4, dies=(1,), gloo_lacks=OURS)
def test_survivors_of_an_all_reduce_go_on() -> None:
    rank, size = me()
    dist.barrier()
    if rank == 1:
        die_soon()
    error = reduce_until_it_raises()
    assert isinstance(error, rdmacoll.DeadRankError)
    assert isinstance(error, dist.DistBackendError | dist.DistNetworkError)
    assert error.dead_ranks == rdmacoll.dead_ranks() == (1,)
    group = rdmacoll.shrink_group(error.dead_ranks)
    assert group is dist.group.WORLD
    assert (dist.get_rank(), dist.get_world_size()) == (rank if rank == 0 else rank - 1, size - 1)
    sums_are_exact()
    step_is_exact()
    dist.barrier()


@distributed(4, dies=(1, 2), gloo_lacks=OURS)
def test_twice_in_a_row() -> None:
    rank, size = me()
    for victim in (1, 2):  # by the numbers of the beginning
        dist.barrier()
        if rank == victim:
            die_soon()
        reduce_until_it_raises()
        rdmacoll.shrink_group()
        size -= 1
        assert dist.get_world_size() == size
        sums_are_exact()
        step_is_exact()
    dist.barrier()


@distributed(3, dies=(1,), gloo_lacks=OURS)
def test_training_goes_on_with_the_weights_it_had() -> None:
    rank, _ = me()
    model = net()
    train(DDP(model))
    if rank == 1:
        die_soon(0)
    with pytest.raises(RuntimeError):
        train(DDP(model), steps=1000)
    assert rdmacoll.dead_ranks() == (1,)
    rdmacoll.shrink_group()
    weights = nn.utils.parameters_to_vector(model.parameters()).detach()
    dist.broadcast(weights, 0)  # one may have taken a step more than the other
    nn.utils.vector_to_parameters(weights, model.parameters())
    twin = net()
    twin.load_state_dict(model.state_dict())
    train(DDP(model), steps=3)
    train(twin, steps=3, whole_batch=True)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


@distributed(4, dies=(2,), gloo_lacks=OURS)
def test_a_group_that_is_not_the_default() -> None:
    rank, _ = me()
    trio = dist.new_group([1, 2, 3])
    dist.barrier()
    if rank == 0:
        return
    if rank == 2:
        die_soon()
    reduce_until_it_raises(trio)
    assert rdmacoll.dead_ranks(trio) == (1,)
    pair = rdmacoll.shrink_group(group=trio)
    assert dist.get_process_group_ranks(pair) == [1, 3]
    assert dist.get_world_size() == 4
    sums_are_exact(pair)
    step_is_exact(pair)
    tensor = torch.full((1,), float(rank))
    dist.broadcast(tensor, 3, group=pair)
    assert tensor.item() == 3
    dist.barrier(group=pair)


@distributed(3, fresh=True, gloo_lacks=OURS)
def test_groups_of_the_smaller_one() -> None:
    rank, _ = me()
    dist.new_group([0, 1])
    if rank == 0:
        stay_away()
        return
    store_of_the_beginning = dist.distributed_c10d._get_default_store()
    rdmacoll.shrink_group([0])
    group = dist.new_group([0, 1])
    sums_are_exact(group)
    step_is_exact(group)
    halves = [dist.new_group([member]) for member in range(2)]
    sums_are_exact(halves[dist.get_rank()])
    objects: list[object] = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 1}, {"rank": 2}]
    dist.barrier()
    store_of_the_beginning.add("raised", 1)


@distributed(2, 3, fresh=True, gloo_lacks=OURS)
def test_torchs_own_of_a_healthy_group() -> None:
    if dist.get_rank() == 0:
        stay_away()
        return
    store_of_the_beginning = dist.distributed_c10d._get_default_store()
    size = dist.get_world_size()
    group = dist.distributed_c10d.shrink_group([0])
    assert (group.rank(), group.size()) == (dist.get_rank(), size - 1)
    sums_are_exact()
    dist.barrier()
    store_of_the_beginning.add("raised", 1)


@distributed(3, fresh=True, gloo_lacks=OURS)
def test_who_is_excluded_is_told_so() -> None:
    pair_or_error: Callable[[], object] = lambda: rdmacoll.shrink_group(  # noqa: E731
        [] if dist.get_rank() == 2 else [2]
    )
    if dist.get_rank() == 2:
        with pytest.raises(dist.DistBackendError, match="without this rank, rank 2"):
            pair_or_error()
        return
    pair_or_error()
    sums_are_exact()
    dist.barrier()


@distributed(2, fresh=True, gloo_lacks=OURS)
def test_who_does_not_call_it_is_named() -> None:
    if dist.get_rank() == 1:
        stay_away()
        return
    with pytest.raises(dist.DistBackendError, match="rank 1 has not called it; name them"):
        rdmacoll.shrink_group(timeout=SECOND)
    raised()
    rdmacoll.shrink_group([1], timeout=SECOND)
    sums_are_exact()


@distributed(2, fresh=True, gloo_lacks=OURS)
def test_bad_arguments() -> None:
    for bad in ([2], [-1], [dist.get_rank()]):
        with pytest.raises(RuntimeError, match="ranks_to_exclude names rank"):
            rdmacoll.shrink_group(bad)
    gloo = dist.new_group(backend="gloo")
    with pytest.raises(TypeError, match="gloo"):
        rdmacoll.shrink_group(group=gloo)
    for not_a_group in (dist.GroupMember.NON_GROUP_MEMBER, "world", 0):
        with pytest.raises(TypeError, match="is no group that this rank is in"):
            rdmacoll.shrink_group(group=not_a_group)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="is no group that this rank is in"):
            rdmacoll.dead_ranks(not_a_group)  # type: ignore[arg-type]
    sums_are_exact()


@distributed(2, fresh=True, gloo_lacks=OURS)
def test_nobody_is_dead_where_nobody_died() -> None:
    assert rdmacoll.dead_ranks() == ()
    group = dist.new_group(timeout=SECOND)
    if dist.get_rank() == 1:
        stay_away()
        return
    with pytest.raises(RuntimeError) as caught:
        dist.all_reduce(torch.ones(10), group=group)
    assert not isinstance(caught.value, rdmacoll.DeadRankError)
    raised()
