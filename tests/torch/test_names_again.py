"""A group's name in a store that knows it already: torch counts names anew after each
init_process_group(), and a group that could not be made is tried again under the same name."""

from __future__ import annotations

import datetime
import os

import pytest
import torch
import torch.distributed as dist
from harness import distributed
from world import GROUP_TIMEOUT, backend, client_store

SOON = datetime.timedelta(seconds=1)
LACKS = "takes keys of an earlier group for its own"


def rank_of_job() -> int:
    return int(os.environ["RANK"])


def use(group: dist.ProcessGroup, members: list[int]) -> None:
    if dist.get_rank() in members:
        tensor = torch.full((100,), float(dist.get_rank() + 1))
        dist.all_reduce(tensor, group=group)
        assert tensor.unique().tolist() == [float(sum(members) + len(members))]


@distributed(3, init=False, gloo_lacks=LACKS)
def test_other_members_under_the_same_name() -> None:
    for members in ([0, 1], [0, 1, 2], [1, 2], [2, 1], [0, 2], [0, 1, 2]):
        store = dist.PrefixStore("one for all", client_store())
        dist.init_process_group(
            backend(), store=store, rank=rank_of_job(), world_size=3, timeout=GROUP_TIMEOUT
        )
        use(dist.new_group(members), members)
        dist.destroy_process_group()


@distributed(3, init=False, gloo_lacks=LACKS)
def test_a_world_of_another_size_under_the_same_name() -> None:
    for size in (2, 3, 1, 3, 2):
        store = dist.PrefixStore("of any size", client_store())
        if (rank := rank_of_job()) < size:
            dist.init_process_group(
                backend(), store=store, rank=rank, world_size=size, timeout=GROUP_TIMEOUT
            )
            use(dist.group.WORLD, list(range(size)))  # type: ignore[arg-type]
            dist.destroy_process_group()


@distributed(2, gloo_lacks=LACKS)
def test_tried_again_after_one_came_alone() -> None:
    for alone in (0, 1, 1):
        if dist.get_rank() == alone:
            with pytest.raises(dist.DistBackendError, match=f"no word from rank {1 - alone}"):
                dist.new_group([0, 1], use_local_synchronization=True, timeout=SOON)
        dist.barrier()
    group = dist.new_group([0, 1], use_local_synchronization=True)
    use(group, [0, 1])
    dist.destroy_process_group(group)


@distributed(3, gloo_lacks=LACKS)
def test_others_hear_that_one_has_given_up() -> None:
    members = [0, 1, 2]
    if (rank := dist.get_rank()) == 0:
        with pytest.raises(dist.DistBackendError, match="no word from rank"):
            dist.new_group(members, use_local_synchronization=True, timeout=SOON)
    elif rank == 1:  # its own timeout is that of a test that hangs
        with pytest.raises(RuntimeError, match="another rank has given up .* no word from rank"):
            dist.new_group(members, use_local_synchronization=True)
    dist.barrier()
    group = dist.new_group(members, use_local_synchronization=True)
    use(group, members)
    dist.destroy_process_group(group)


@distributed(2, init=False, gloo_lacks=LACKS)
def test_tries_leave_nothing_in_the_store() -> None:
    held = []
    for _ in range(4):
        server = client_store()
        store = dist.PrefixStore("again and again", server)
        dist.init_process_group(backend(), store=store, rank=rank_of_job(), world_size=2)
        if dist.get_rank() == 0:
            with pytest.raises(dist.DistBackendError, match="no word from rank 1"):
                dist.new_group([0, 1], use_local_synchronization=True, timeout=SOON)
        dist.barrier()
        use(dist.new_group([0, 1], use_local_synchronization=True), [0, 1])
        dist.barrier()
        held.append(server.num_keys())
        dist.barrier()
        dist.destroy_process_group()
    assert held[-1] == held[-2], held
