"""torch.ops.rdmacoll when ranks die or do not come, and when groups are gone."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from cases import me
from failing import raised, stay_away
from harness import distributed
from test_operators import GLOO, handle
from test_rank_failure import SECOND, die, patient_group

Call = Callable[[int, int], None]


def broadcast(group: int, world: int) -> None:
    torch.ops.rdmacoll.broadcast_(torch.ones(1000), group, min(1, world - 1))


def all_gather(group: int, world: int) -> None:
    torch.ops.rdmacoll.all_gather_into(torch.zeros(1000 * world), torch.ones(1000), group)


def reduce_scatter(group: int, world: int) -> None:
    torch.ops.rdmacoll.reduce_scatter_into(torch.zeros(1000), torch.ones(1000 * world), group)


def all_to_all(group: int, world: int) -> None:
    both = torch.zeros(1000 * world), torch.ones(1000 * world)
    torch.ops.rdmacoll.all_to_all_into(*both, group)


CALLS: dict[str, Call] = {
    "all_reduce_": lambda group, _: torch.ops.rdmacoll.all_reduce_(torch.ones(1000), group),
    "broadcast_": broadcast,
    "all_gather_into": all_gather,
    "reduce_scatter_into": reduce_scatter,
    "all_to_all_into": all_to_all,
}


@distributed(2, 3, dies=(1,), gloo_lacks=GLOO)
@pytest.mark.parametrize("name", CALLS)
def test_a_killed_rank(name: str) -> None:
    import rdmacoll

    group = patient_group()
    rank, world = me()
    dist.barrier()
    if rank == 1:
        die()
    for _ in range(2):
        with pytest.raises(rdmacoll.DeadRankError) as caught:
            CALLS[name](handle(group), world)
        assert caught.value.dead_ranks == (1,)


@distributed(2, fresh=True, gloo_lacks=GLOO)
def test_the_deadline_of_the_group() -> None:
    group = dist.new_group(timeout=SECOND)
    if dist.get_rank() == 1:
        stay_away()
        return
    with pytest.raises(
        dist.DistBackendError, match="(?s)Timed out.*all_reduce #1.*rank 1: has called"
    ):
        torch.ops.rdmacoll.all_reduce_(torch.ones(10), handle(group))
    raised()


@distributed(2, fresh=True, gloo_lacks=GLOO)
def test_a_mismatch_names_what_both_called() -> None:
    group = patient_group()
    with pytest.raises(dist.DistBackendError) as caught:
        if dist.get_rank() == 1:
            dist.all_reduce(torch.ones(10), op=dist.ReduceOp.MAX, group=group)
        else:
            torch.ops.rdmacoll.all_reduce_(torch.ones(10), handle(group))
    assert "all_reduce #1 (40 bytes, Float32, Sum, " in str(caught.value)
    assert "all_reduce #1 (40 bytes, Float32, Max, " in str(caught.value)


@distributed(2, fresh=True, gloo_lacks=GLOO)
def test_control_c_interrupts_the_wait() -> None:
    group = patient_group()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dist.barrier(group=group)
    if dist.get_rank() == 1:
        stay_away()
        return
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        torch.ops.rdmacoll.all_reduce_(torch.ones(10), handle(group))
    raised()


@distributed(2, gloo_lacks=GLOO)
def test_other_threads_run_while_it_waits() -> None:
    """The other rank comes when a thread of this one has told it to."""
    store = dist.distributed_c10d._get_default_store()
    key = "a thread ran"
    if dist.get_rank() == 1:
        store.wait([key])
    else:

        def tell() -> None:
            time.sleep(0.2)
            store.set(key, "")

        threading.Thread(target=tell).start()
    torch.ops.rdmacoll.all_reduce_(torch.ones(10), handle())


@distributed(1, 2, gloo_lacks=GLOO)
@pytest.mark.parametrize("name", CALLS)
def test_a_destroyed_group(name: str) -> None:
    _, world = me()
    group = dist.new_group()
    named = handle(group)
    CALLS[name](named, world)
    dist.destroy_process_group(group)
    with pytest.raises(RuntimeError, match="the group was shut down"):
        CALLS[name](named, world)  # `group` is held
    del group
    gc.collect()
    with pytest.raises(RuntimeError, match=f"group={named} is .* group that was destroyed"):
        CALLS[name](named, world)
    again = dist.new_group()
    assert handle(again) != named
    dist.destroy_process_group(again)


@distributed(1, gloo_lacks=GLOO)
def test_what_is_no_handle() -> None:
    for number in (-1, 0, 1 << 40):
        with pytest.raises(RuntimeError, match=f"group={number} is not the handle .*ops.handle"):
            torch.ops.rdmacoll.all_reduce_(torch.ones(1), number)


@distributed(2, gloo_lacks=GLOO)
def test_a_group_of_another_backend_has_none() -> None:
    group = dist.new_group(backend="gloo")
    with pytest.raises(TypeError, match="gloo"):
        handle(group)
    dist.destroy_process_group(group)


@distributed(2, gloo_lacks=GLOO)
def test_a_handle_keeps_no_group_alive() -> None:
    """Who lets go of a group leaves it: the other rank, which waits in it, learns of that."""
    group = patient_group()
    named = handle(group)
    rank, world = me()
    all_gather(named, world)
    dist.destroy_process_group(group)
    del group
    gc.collect()
    with pytest.raises(RuntimeError, match="destroyed"):
        all_gather(named, world)


@distributed(1, 2, gloo_lacks=GLOO)
def test_a_forked_process_is_told_so() -> None:
    named = handle()
    torch.ops.rdmacoll.all_reduce_(torch.ones(1), named)
    child = os.fork()
    if child == 0:
        try:
            torch.ops.rdmacoll.all_reduce_(torch.ones(1), named)
        except RuntimeError as error:
            os._exit(0 if "this process was forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    torch.ops.rdmacoll.all_reduce_(torch.ones(1), named)
