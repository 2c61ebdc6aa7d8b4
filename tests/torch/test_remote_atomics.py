"""Atomics on remote memory: counters that lose nothing, locks that one holds, and bad input."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from owned import OWNER, owned

from rdmacoll import remote

LACKS = "has no remote memory"
WORLDS = (2, 3, 4)
ADDS = 200


def words(
    name: str, values: list[int], dtype: torch.dtype = torch.int64
) -> AbstractContextManager[tuple[remote.Exposure | None, remote.RemoteTensor | None]]:
    def make() -> torch.Tensor:
        memory = remote.empty(len(values), dtype=dtype, access="rw")
        return memory.copy_(torch.tensor(values, dtype=dtype))

    return owned(name, make)


def gathered(mine: list[int]) -> list[list[int]]:
    everybody: list[list[int]] = [[] for _ in range(me()[1])]
    dist.all_gather_object(everybody, mine)
    return everybody


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64])
@distributed(*WORLDS, gloo_lacks=LACKS)
def test_a_counter_gives_each_number_once(dtype: torch.dtype) -> None:
    with words("counter", [7, 0, 7], dtype) as (own, there):
        if own is not None:
            mine = [own.fetch_add(1, 1) for _ in range(ADDS)]
        else:
            assert there is not None
            mine = [there[1].fetch_add(1) for _ in range(ADDS)]
        assert mine == sorted(mine)
        numbers = sorted(number for of_rank in gathered(mine) for number in of_rank)
        assert numbers == list(range(ADDS * me()[1]))
        if own is not None:
            assert own.tensor.tolist() == [7, len(numbers), 7]
        else:
            assert there is not None and there.read().tolist() == [7, len(numbers), 7]


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_many_are_under_way_at_once() -> None:
    with words("counter", [0, -1]) as (_, there):
        mine: list[int] = []
        if there is not None:
            works = [there[0].fetch_add_async(1) for _ in range(ADDS)]
            mine = [work.wait() for work in works]
            assert all(work.done() for work in works)
            assert [work.wait() for work in works] == mine
        numbers = sorted(number for of_rank in gathered(mine) for number in of_rank)
        assert numbers == list(range(ADDS * (me()[1] - 1)))
        swaps: list[int] = []
        if there is not None:
            swap = there[1].compare_swap_async(-1, me()[0])
            doubled = swap.future().then(lambda ended: 2 * ended.wait())
            swaps = [swap.wait()]
            assert doubled.wait() == 2 * swaps[0]
        before = [number for of_rank in gathered(swaps) for number in of_rank]
        assert before.count(-1) == 1
        assert len({*before} - {-1}) == (1 if me()[1] > 2 else 0)


@distributed(*WORLDS, gloo_lacks=LACKS)
def test_a_lock_is_held_by_one() -> None:
    """What it guards is read and written back: two who held it would lose one of their writes."""
    rounds, me_there = 20, me()[0] + 1
    with words("lock", [0, 0]) as (own, there):
        if own is None:
            assert there is not None
            for _ in range(rounds):
                while (holder := there[0].compare_swap(0, me_there)) != 0:
                    assert 1 < holder <= me()[1] and holder != me_there
                there[1].write(there[1].read() + 1)
                there.fence()
                assert there[0].compare_swap(me_there, 0) == me_there
        dist.barrier()
        if own is not None:
            assert own.tensor.tolist() == [0, rounds * (me()[1] - 1)]


@distributed(2, gloo_lacks=LACKS)
def test_numbers_with_a_sign_and_without() -> None:
    most, least = (1 << 63) - 1, -(1 << 63)
    for dtype, low, high in ((torch.int64, least, most), (torch.uint64, 0, (1 << 64) - 1)):
        with words("numbers", [0], dtype) as (own, there):
            if there is not None:
                assert there[0].fetch_add(high) == 0
                assert there[0].fetch_add(1) == high
                assert there[0].compare_swap(low, 5) == low
                assert there[0].compare_swap(low, 6) == 5
                assert there[0:1].fetch_add(0) == 5
            dist.barrier()
            if own is not None:
                assert own.compare_swap(0, 5, high) == 5
                assert own.fetch_add(0, 1) == high
                assert own.tensor.tolist() == [low]
    with words("negative", [-3]) as (own, there):
        if there is not None:
            assert there[0].fetch_add(-4) == -3
            assert there[0].compare_swap(-7, -1) == -7
        dist.barrier()
        if own is not None:
            assert own.fetch_add((0,), -1) == -1
            assert own.tensor.tolist() == [-2]


@distributed(2, gloo_lacks=LACKS)
def test_bad_input_changes_nothing() -> None:
    with words("words", [4, 4]) as (own, there):
        if there is not None:
            with pytest.raises(ValueError, match=r"'words' with shape \(2,\) is not one element"):
                there.fetch_add(1)
            with pytest.raises(ValueError, match="value=9223372036854775808 does not fit into"):
                there[0].fetch_add(1 << 63)
            with pytest.raises(TypeError, match="value is a float; give an integer"):
                there[0].fetch_add(1.0)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="value is a bool; give an integer"):
                there[0].fetch_add(True)
            with pytest.raises(TypeError, match="expected is a str; give an integer"):
                there[0].compare_swap("4", 5)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="desired=-9223372036854775809 does not fit"):
                there[0].compare_swap(4, -(1 << 63) - 1)
            with pytest.raises(ValueError, match="timeout=-1; give 0 seconds or more"):
                there[0].fetch_add(1, timeout=-1)
            with pytest.raises(ValueError, match=r"'words' with shape \(2,\) is not one element"):
                there.compare_swap_async(4, 5)
            with pytest.raises(TypeError, match="value is a str; give an integer"):
                there[0].fetch_add_async("1")  # type: ignore[arg-type]
        if own is not None:
            with pytest.raises(ValueError, match=r"'words' with shape \(2,\) is not one element"):
                own.fetch_add(..., 1)  # type: ignore[arg-type]
            with pytest.raises(IndexError):
                own.fetch_add(2, 1)
            with pytest.raises(ValueError, match="value=9223372036854775808 does not fit into"):
                own.fetch_add(0, 1 << 63)
            with pytest.raises(TypeError, match="desired is a NoneType; give an integer"):
                own.compare_swap(0, 4, None)  # type: ignore[arg-type]
        dist.barrier()
        if own is not None:
            assert own.tensor.tolist() == [4, 4]


@distributed(2, gloo_lacks=LACKS)
def test_what_takes_no_atomics() -> None:
    with words("floats", [1], torch.float64) as (own, there):
        wrong = pytest.raises(TypeError, match="'floats' has dtype torch.float64; atomics take")
        if own is not None:
            with wrong:
                own.fetch_add(0, 1)
        if there is not None:
            with wrong:
                there[0].fetch_add(1)
    if me()[0] == OWNER:
        memory = remote.empty(2, dtype=torch.int64)
        exposure = remote.expose(memory, "for reading")
    else:
        there = remote.open("for reading", on=OWNER)
        with pytest.raises(ValueError, match="'for reading' of rank 0 is for reading; its owner"):
            there[0].fetch_add(1)
        assert there.read().tolist() == [0, 0]
    dist.barrier()
    if me()[0] == OWNER:
        exposure.revoke()


@distributed(2, gloo_lacks=LACKS)
def test_revoked() -> None:
    if me()[0] == OWNER:
        exposure = remote.expose(remote.empty(1, dtype=torch.int64, access="rw"), "r", "rw")
        dist.barrier()
        assert exposure.revoke() == []
        assert exposure.tensor.item() == 1
        dist.barrier()
        return
    there = remote.open("r", on=OWNER)
    assert there[0].fetch_add(1) == 0
    dist.barrier()
    dist.barrier()
    with pytest.raises(remote.RevokedError):
        there[0].fetch_add(1)
    revoked = there[0].compare_swap_async(1, 2)
    with pytest.raises(remote.RevokedError):
        revoked.wait()
    with pytest.raises(remote.RevokedError):
        revoked.future().wait()
