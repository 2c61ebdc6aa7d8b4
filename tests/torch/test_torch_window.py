"""Windows: memory of each rank that the others write, as torch has them from 2.15 on. Older ones
have the same of the backend itself, so these tests run with every torch."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed

from rdmacoll import remote
from rdmacoll._extension import extension

LACKS = "has no windows"
WORLDS = (1, 2, 3, 4)
OF_TORCH = hasattr(dist, "_new_window")
ELEMENTS = 10_007


def new_window(tensor: torch.Tensor | None = None) -> Any:
    if OF_TORCH:
        assert dist._supports_window()
        return dist._new_window(tensor)
    return extension().new_window(dist.group.WORLD._get_backend(torch.device("cpu")), tensor)


def limited(kind: str, timeout: timedelta) -> Any:
    opts = getattr(torch._C._distributed_c10d, kind)() if OF_TORCH else extension().WindowOptions()
    opts.timeout = timeout
    return opts


def memory(elements: int = ELEMENTS, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return remote.empty(elements, dtype=dtype, access="rw")


@contextlib.contextmanager
def window(tensor: torch.Tensor) -> Iterator[Any]:
    made = new_window(tensor)
    yield made
    made.tensor_deregister()


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bfloat16])
@distributed(*WORLDS, gloo_lacks=LACKS)
def test_what_is_put_before_a_signal_is_seen_after_it(
    asynchronous: bool, dtype: torch.dtype
) -> None:
    rank, world = me()
    right, left = (rank + 1) % world, (rank - 1) % world
    own = memory(ELEMENTS * world, dtype)
    with window(own) as made:
        for turn in range(4):
            data = torch.full((ELEMENTS,), (rank + turn) % 100, dtype=dtype)
            put = made.put(data, right, rank * ELEMENTS, asynchronous)
            told = made.signal(right, asynchronous)  # need not wait for the put
            heard = made.wait_signal(left, asynchronous)
            for work in (put, told, heard) if asynchronous else ():
                assert work.wait() and work.is_completed() and work.is_success()
            assert (own[left * ELEMENTS :][:ELEMENTS] == (left + turn) % 100).all()
            made.signal(left, False)  # it has been read
            made.wait_signal(right, False)


@distributed(2, 3, gloo_lacks=LACKS)
def test_signals_of_each_rank_are_counted_apart() -> None:
    rank, world = me()
    with window(memory()) as made:
        others = [other for other in range(world) if other != rank]
        for other in others:
            for _ in range(5):
                made.signal(other, False)
        for other in others:
            for _ in range(5):
                made.wait_signal(other, False)
            late = made.wait_signal(
                other, True, limited("WaitSignalOptions", timedelta(milliseconds=1))
            )
            assert not late.is_completed()
            soon = limited("WaitSignalOptions", timedelta(milliseconds=50))
            with pytest.raises(dist.DistBackendError, match=f"rank {other} has not signalled"):
                made.wait_signal(other, False, soon)
        dist.barrier()
        for other in others:
            made.signal(other, False)
            made.signal(other, False)
            made.wait_signal(other, False)  # the first was for the work above


@distributed(*WORLDS, gloo_lacks=LACKS, one_host=True)
def test_memory_of_a_rank_of_the_host_is_mapped() -> None:
    rank, world = me()
    own = memory().copy_(torch.arange(ELEMENTS)).add_(rank)
    with window(own.view(1, ELEMENTS)) as made:
        views = [made.map_remote_tensor(other) for other in range(world)]
        for other, view in enumerate(views):
            assert (view.shape, view.dtype) == ((1, ELEMENTS), torch.float32)
            assert torch.equal(view[0], torch.arange(ELEMENTS, dtype=torch.float32) + other)
            assert made.get_attr(other).access_type.name == "UNIFIED"
        assert views[rank].data_ptr() == own.data_ptr()
        dist.barrier()
        views[(rank + 1) % world][0, 7] = -1.0
        dist.barrier()
        assert own[7] == -1
    dist.barrier()
    del made, own
    gc.collect()
    assert all(view[0, 8] == other + 8 for other, view in enumerate(views))  # they stay
    dist.barrier()


@distributed(2, 4, gloo_lacks=LACKS)
def test_what_cannot_be_mapped_says_so() -> None:
    _, world = me()
    with window(memory()) as made:
        for other in range(world):
            if made.get_attr(other).access_type.name == "UNIFIED":
                assert made.map_remote_tensor(other).shape == (ELEMENTS,)
            else:
                with pytest.raises(NotImplementedError, match=f"rank {other} is on another host"):
                    made.map_remote_tensor(other)


@distributed(2, gloo_lacks=LACKS)
def test_windows_one_after_another_and_at_once() -> None:
    rank, _ = me()
    first, second = memory(), memory()
    later = new_window()
    with window(first) as made:
        later.tensor_register(second, owning=False)
        later.put(torch.full((3,), 2.0), 1 - rank, 0, False)
        made.put(torch.full((3,), 1.0), 1 - rank, 0, False)
        later.tensor_deregister()
    assert first[:4].tolist() == [1, 1, 1, 0]
    assert second[:4].tolist() == [2, 2, 2, 0]
    later.tensor_register(first)
    later.put(torch.full((2, 2), 3.0).t(), 1 - rank, ELEMENTS - 4, False)  # it is packed
    later.tensor_deregister()
    assert first[-5:].tolist() == [0, 3, 3, 3, 3]
    before = remote.stats()["exposures"]
    unused = new_window(first)
    dist.barrier()
    del unused
    gc.collect()
    assert remote.stats()["exposures"] == before
    dist.barrier()


@distributed(2, gloo_lacks=LACKS)
def test_bad_input() -> None:
    rank, _ = me()
    made, own = new_window(), memory(16)
    for tensor in (torch.ones(16), remote.empty(16)):
        with pytest.raises(RuntimeError, match="rdmacoll.remote.empty"):
            made.tensor_register(tensor)
    with pytest.raises(RuntimeError, match="not contiguous"):
        made.tensor_register(own.view(4, 4).t())
    with pytest.raises(RuntimeError, match="was refused there|rdmacoll.remote.empty"):
        made.tensor_register(own if rank == 0 else torch.ones(16))
    with pytest.raises(RuntimeError, match="all ranks register the same"):
        made.tensor_register(own[: 8 + rank])
    with pytest.raises(RuntimeError, match="all ranks register the same"):
        made.tensor_register(own if rank == 0 else own.view(torch.int32))
    for call in (
        lambda: made.put(own, 0, 0, False),
        lambda: made.signal(0, False),
        lambda: made.wait_signal(0, False),
        lambda: made.map_remote_tensor(0),
        lambda: made.get_attr(0),
        made.tensor_deregister,
    ):
        with pytest.raises(RuntimeError, match="not registered"):
            call()
    made.tensor_register(own)
    with pytest.raises(RuntimeError, match="double registration"):
        made.tensor_register(own)
    for elements, offset in ((16, 8), (1, 16), (1, -1), (17, 0)):
        with pytest.raises(RuntimeError, match="exceeds the window size"):
            made.put(torch.ones(elements), 1 - rank, offset, False)
    with pytest.raises(RuntimeError, match="dtype"):
        made.put(torch.ones(4, dtype=torch.int32), 1 - rank, 0, False)
    for wrong in (-1, 2, 1 << 40):
        with pytest.raises(RuntimeError, match="rank"):
            made.put(torch.ones(1), wrong, 0, False)
    assert not own.any()
    dist.barrier()
    made.put(torch.ones(16), 1 - rank, 0, False)
    made.tensor_deregister()
    assert own.all()


@distributed(3, dies=(2,), gloo_lacks=LACKS)
def test_a_rank_that_is_killed_fails_what_is_done_there() -> None:
    rank, _ = me()
    own = memory()
    made = new_window(own)
    made.signal((rank + 1) % 3, False)
    made.wait_signal((rank - 1) % 3, False)
    dist.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistNetworkError):
        made.wait_signal(2, False)
    with pytest.raises(dist.DistNetworkError):
        while True:
            made.put(torch.ones(4), 2, 0, False)
    made.put(torch.ones(4), 1 - rank, 0, False)  # the others go on
    made.signal(1 - rank, False)
    made.wait_signal(1 - rank, False)
    assert own[:5].tolist() == [1, 1, 1, 1, 0]
