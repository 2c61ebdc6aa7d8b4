"""Groups that are given their ranks, and given them anew: what torch has from 2.15 on, called as
its reconfigure calls it, since older ones have no interface for it and number ranks once."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from world import client_store

from rdmacoll import _create

OURS = "has no such group before torch 2.15"
SOON = datetime.timedelta(seconds=1)
RENUMBERS = hasattr(torch._C._distributed_c10d.Backend, "supports_reconfigure")


def without_ranks(name: str, place: tuple[int, int] | None = None) -> Any:
    """As init_process_group(enable_reconfigure=True) makes it; place: this one, of so many."""
    rank, size = place or me()
    group = SimpleNamespace(
        store=dist.PrefixStore(name, client_store()),
        group_rank=rank,
        group_size=size,
        timeout=datetime.timedelta(seconds=30),
        group_id=name,
        global_ranks_in_group=[],
        enable_reconfigure=True,
    )
    return _create.create(group, None)


def handles_of_all(backend: Any) -> list[str]:
    handles = [""] * dist.get_world_size()
    dist.all_gather_object(handles, backend._reconfigure_handle())
    return handles


def sums_are_exact(backend: Any) -> None:
    rank, size = me()
    for count in (1, 1_000_000):
        tensor = torch.full((count,), float(rank + 1))
        backend.allreduce([tensor]).wait()
        assert torch.equal(tensor, torch.full((count,), size * (size + 1) / 2))


@distributed(1, 2, 3, gloo_lacks=OURS)
def test_it_has_no_ranks_before_it_is_given_them() -> None:
    backend = without_ranks("before")
    with pytest.raises(RuntimeError, match=r"has no ranks: .*_reconfigure"):
        backend.allreduce([torch.ones(1)])
    with pytest.raises(RuntimeError, match="has no ranks"):
        backend._paths()
    backend.set_timeout(datetime.timedelta(seconds=20))
    backend._reconfigure(1, handles_of_all(backend)).wait()
    sums_are_exact(backend)
    assert len(backend._paths()) == dist.get_world_size() - 1


@distributed(2, 3, gloo_lacks=OURS)
def test_it_is_given_them_again_after_a_failure() -> None:
    rank, _ = me()
    backend = without_ranks("again")
    handles = handles_of_all(backend)
    for uuid in (-5, 0, 1 << 40):
        backend._reconfigure(uuid, handles).wait()
        sums_are_exact(backend)
        dist.barrier()
        if rank == 1:
            backend.abort()
        with pytest.raises(RuntimeError):
            while True:
                backend.allreduce([torch.ones(1)]).wait()


@distributed(3, gloo_lacks=OURS)
def test_another_takes_the_place_of_one() -> None:
    backend = without_ranks("another")
    backend._reconfigure(1, handles_of_all(backend)).wait()
    if me()[0] == 1:
        backend = without_ranks("another")
    backend._reconfigure(2, handles_of_all(backend)).wait()
    sums_are_exact(backend)


@distributed(2, gloo_lacks=OURS)
def test_numbers_of_groups_without_a_rank_in_common_may_be_equal() -> None:
    """Each of these has one rank, which torch could not say of it before 2.15."""
    rank, _ = me()
    backend = without_ranks("alone", (0, 1))
    backend._reconfigure(7, {backend._reconfigure_handle()}).wait()
    tensor = torch.full((1,), float(rank))
    backend.allreduce([tensor]).wait()
    assert tensor.item() == rank


@distributed(2, gloo_lacks=OURS)
def test_what_cannot_be_is_refused() -> None:
    rank, _ = me()
    backend = without_ranks("refused")
    handles = handles_of_all(backend)
    with pytest.raises(RuntimeError, match="handles name this process, '.*', 0 times"):
        backend._reconfigure(1, [handles[1 - rank]])
    with pytest.raises(RuntimeError, match="2 times; give each rank's"):
        backend._reconfigure(1, [handles[rank]] * 2)
    backend._reconfigure(1, handles).wait()
    with pytest.raises(RuntimeError, match="uuid=1 was used before"):
        backend._reconfigure(1, handles)
    sums_are_exact(backend)  # it is still in it
    if not RENUMBERS:
        with pytest.raises(RuntimeError, match="torch 2.15 and newer can"):
            backend._reconfigure(2, handles[::-1])
    with pytest.raises(RuntimeError, match="without enable_reconfigure=True"):
        dist.group.WORLD._get_backend(torch.device("cpu"))._reconfigure_handle()


@distributed(2, gloo_lacks=OURS)
def test_one_that_does_not_come_is_named_and_may_come_later() -> None:
    backend = without_ranks("late")
    handles = handles_of_all(backend)
    if me()[0] == 0:
        with pytest.raises(RuntimeError, match="rank"):
            backend._reconfigure(1, handles, SOON)
        with pytest.raises(RuntimeError, match="has no ranks"):
            backend.allreduce([torch.ones(1)])
    dist.barrier()
    backend._reconfigure(2, handles).wait()
    sums_are_exact(backend)
