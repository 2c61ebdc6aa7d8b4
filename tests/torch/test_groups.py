"""Many groups: subgroups of every kind, split, beside gloo, made and destroyed again and again."""

from __future__ import annotations

import datetime
import itertools
import os
from typing import Any

import torch
import torch.distributed as dist
from cases import check, done, me, values
from harness import ALL_WORLDS, distributed
from world import GROUP_TIMEOUT, backend, client_store


def use(group: dist.ProcessGroup, ranks: list[int], count: int = 1021) -> None:
    """Every kind of traffic once, checked."""
    if dist.get_rank() not in ranks:
        return
    rank = dist.get_rank()
    expected = sum(values(peer, count, torch.float32) for peer in ranks)
    assert isinstance(expected, torch.Tensor)
    tensor = values(rank, count, torch.float32)
    dist.all_reduce(tensor, group=group)
    check(tensor, expected, "all_reduce in", ranks)
    tensor = values(rank, count, torch.float32)
    dist.broadcast(tensor, ranks[-1], group=group)
    check(tensor, values(ranks[-1], count, torch.float32), "broadcast in", ranks)
    outputs = [torch.zeros(count) for _ in ranks]
    dist.all_gather(outputs, values(rank, count, torch.float32), group=group)
    for peer, output in zip(ranks, outputs, strict=True):
        check(output, values(peer, count, torch.float32), "all_gather in", ranks, peer)
    if len(ranks) > 1:
        if rank == ranks[0]:
            dist.send(tensor, ranks[-1], group=group)
        if rank == ranks[-1]:
            assert dist.recv(tensor, ranks[0], group=group) == ranks[0]
    dist.barrier(group=group)


@distributed(2, 3, 4, 7)
def test_subgroups() -> None:
    _, world = me()
    everyone = list(range(world))
    for ranks in ([0], [world - 1], everyone[1:], everyone[::2], everyone[1::2], everyone):
        group = dist.new_group(ranks)
        use(group, ranks)
        if dist.get_rank() in ranks:
            assert dist.get_backend(group) == backend()
            dist.destroy_process_group(group)


@distributed(3, 4, 7)
def test_every_pair_alive_at_once() -> None:
    rank, world = me()
    pairs = [list(pair) for pair in itertools.combinations(range(world), 2)]
    groups = [dist.new_group(pair) for pair in pairs]
    mine = [i for i, pair in enumerate(pairs) if rank in pair]
    tensors = {i: torch.full((100,), float(rank + 1)) for i in mine}
    works = [dist.all_reduce(tensors[i], group=groups[i], async_op=True) for i in mine]
    for work in reversed(works):
        done(work)
    for i in mine:
        assert tensors[i].tolist() == [float(sum(pairs[i]) + 2)] * 100
        dist.destroy_process_group(groups[i])


@distributed(4)
def test_several_groups_of_the_same_ranks() -> None:
    rank, world = me()
    groups = [dist.new_group() for _ in range(4)]
    order = groups if rank % 2 else groups[::-1]  # issued in different orders on different ranks
    tensors = {group: torch.full((5000,), float(rank)) for group in groups}
    works = [dist.all_reduce(tensors[group], group=group, async_op=True) for group in order]
    for work in works:
        done(work)
    for group in groups:
        assert tensors[group].unique().tolist() == [float(world * (world - 1) // 2)]
        dist.destroy_process_group(group)


@distributed(4)
def test_new_subgroups_and_local_synchronization() -> None:
    rank, _ = me()
    half, _ = dist.new_subgroups(2)
    ranks = [rank // 2 * 2, rank // 2 * 2 + 1]
    use(half, ranks)
    group = dist.new_group(ranks, use_local_synchronization=True)
    use(group, ranks)
    dist.destroy_process_group(group)
    dist.destroy_process_group(half)


@distributed(2, 3, 4)
def test_split_group() -> None:
    """torch gates dist.split_group by an accelerator; the C++ group is free."""
    rank, world = me()
    pg = dist.group.WORLD
    assert pg is not None
    if not pg._get_backend(torch.device("cpu")).supports_splitting:
        raise AssertionError(f"{backend()} does not support splitting")
    ranks = list(range(rank % 2, world, 2))
    name: Any = f"split{rank % 2}"
    split = pg.split_group(ranks, timeout=GROUP_TIMEOUT, group_name=name)
    assert split is not None
    assert (split.size(), split.rank()) == (len(ranks), ranks.index(rank))
    for count in (1, 5000):
        tensor = values(rank, count, torch.float32)
        split.allreduce([tensor]).wait()
        expected = sum(values(peer, count, torch.float32) for peer in ranks)
        assert torch.equal(tensor, expected)  # type: ignore[arg-type]
    split.shutdown()


@distributed(1, 2, 3, init=False)
def test_destroy_and_init_again() -> None:
    for generation in range(5):
        store = dist.PrefixStore(f"generation{generation}", client_store())
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group(backend(), store=store, rank=rank, world_size=world)
        use(dist.group.WORLD, list(range(world)), 100 + generation)  # type: ignore[arg-type]
        others = [dist.new_group() for _ in range(generation % 3)]
        for group in others:
            use(group, list(range(world)))
        dist.destroy_process_group()


@distributed(2, 3, init=False)
def test_named_for_the_device() -> None:
    dist.init_process_group(f"cpu:{backend()}")
    rank, world = me()
    use(dist.group.WORLD, list(range(world)))  # type: ignore[arg-type]
    dist.destroy_process_group()


@distributed(2, 3, init=False, gloo_lacks="counts point-to-point among the collectives")
def test_under_detailed_debugging() -> None:
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    dist.init_process_group(backend())
    _, world = me()
    use(dist.group.WORLD, list(range(world)))  # type: ignore[arg-type]
    dist.destroy_process_group()


@distributed(3, init=False)
def test_first_group_is_not_the_world() -> None:
    """The default group is gloo's; ours comes later, with two of three ranks."""
    dist.init_process_group("gloo")
    group = dist.new_group([2, 1], backend=backend())
    use(group, [1, 2])
    everyone = dist.new_group(backend=backend())
    use(everyone, [0, 1, 2])
    dist.destroy_process_group()


@distributed(2, 3)
def test_beside_gloo() -> None:
    rank, world = me()
    gloo = dist.new_group(backend="gloo")
    ours, theirs = torch.full((1000,), 1.0), torch.full((1000,), 2.0)
    works = [dist.all_reduce(ours, async_op=True)]
    works.append(dist.all_reduce(theirs, group=gloo, async_op=True))
    for work in works:
        done(work)
    assert (ours[0].item(), theirs[0].item()) == (world, 2 * world)
    dist.destroy_process_group(gloo)


@distributed(2)
def test_sequence_numbers_advance_together() -> None:
    group = dist.new_group()
    pg = group._get_backend(torch.device("cpu"))
    numbers = []
    for _ in range(3):
        dist.all_reduce(torch.ones(1), group=group)
        numbers.append(pg._get_sequence_number_for_group())
    assert numbers == list(range(numbers[0], numbers[0] + 3)), numbers
    everyone: list[object] = [None, None]
    dist.all_gather_object(everyone, numbers)
    assert everyone[0] == everyone[1]
    dist.destroy_process_group(group)


@distributed(*ALL_WORLDS)
def test_names_and_sizes() -> None:
    rank, world = me()
    pg = dist.group.WORLD
    assert pg is not None
    cpu = pg._get_backend(torch.device("cpu"))
    assert (pg.rank(), pg.size(), cpu.rank(), cpu.size()) == (rank, world, rank, world)
    assert cpu.name() == backend()
    assert dist.get_backend() == backend()


@distributed(2)
def test_timeouts_can_be_set() -> None:
    group = dist.new_group(timeout=datetime.timedelta(seconds=11))
    group.set_timeout(datetime.timedelta(seconds=12))
    use(group, [0, 1])
    dist.destroy_process_group(group)
