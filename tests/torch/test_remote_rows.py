"""Rows of another process's tensor, by their indices: what is written comes to where it belongs."""

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
ROWS, COLUMNS = 301, 67


def table(
    name: str, dtype: torch.dtype = torch.float32, access: str = "rw"
) -> AbstractContextManager[tuple[remote.Exposure | None, remote.RemoteTensor | None]]:
    """Of zeros."""
    return owned(name, lambda: remote.empty(ROWS, COLUMNS, dtype=dtype, access=access), access)


def some(count: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return ((torch.arange(count * COLUMNS) * 7 + seed) % 97 + 1).to(dtype).view(count, COLUMNS)


def rows_of(rank: int) -> torch.Tensor:
    """None of another rank's; in no order, or one behind the other."""
    mine = torch.arange(ROWS).chunk(me()[1] - 1)[rank - 1]
    return mine[torch.arange(len(mine)) * 13 % len(mine)] if rank % 2 == 1 else mine


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@distributed(*WORLDS, gloo_lacks=LACKS)
def test_rows_come_to_their_places(dtype: torch.dtype) -> None:
    rank, world = me()
    with table("table", dtype) as (own, there):
        if there is not None:
            rows = rows_of(rank)
            there.write_rows(rows, some(len(rows), rank, dtype), notify=1)
            assert torch.equal(there.read_rows(rows), some(len(rows), rank, dtype))
            there.fence()
        dist.barrier()
        if own is not None:
            assert own.wait_notify(1) == 1
            expected = torch.zeros(ROWS, COLUMNS, dtype=dtype)
            for other in range(1, world):
                rows = rows_of(other)
                expected[rows] = some(len(rows), other, dtype)
            assert torch.equal(own.tensor, expected)


@distributed(2, gloo_lacks=LACKS)
def test_the_last_of_equal_rows_is_there() -> None:
    rows = [4, 4, 300, 5, 4, 6, 0, 5, 6]
    with table("twice") as (own, there):
        if there is not None:
            for notify in range(1, 20):
                there.write_rows(rows, some(len(rows), notify), notify)
            work = there.write_rows_async(torch.tensor(rows), some(len(rows), 20), notify=20)
            assert work.wait() is None and work.done()
        if own is not None:
            assert own.wait_notify(20) == 20
            values, expected = some(len(rows), 20), torch.zeros(ROWS, COLUMNS)
            for row, value in zip(rows, values, strict=True):
                expected[row] = value
            assert torch.equal(own.tensor, expected)


@distributed(2, gloo_lacks=LACKS)
def test_parts_and_nothing() -> None:
    with table("parts") as (own, there):
        if there is not None:
            there[10:20].write_rows([9, 0], some(2, 1))
            there.write_rows([30, 31, 32, 40, 41, 29], some(6, 2))
            there[7].write_rows([3, 5], torch.tensor([1.0, 2.0]))
            there.write_rows([], torch.empty(0, COLUMNS), notify=1)
            there[7][8:8].write_rows([], torch.empty(0))
            there.fence()
        dist.barrier()
        if own is not None:
            assert own.notified == 1
            expected = torch.zeros(ROWS, COLUMNS)
            expected[[19, 10]] = some(2, 1)
            expected[[30, 31, 32, 40, 41, 29]] = some(6, 2)
            expected[7][[3, 5]] = torch.tensor([1.0, 2.0])
            assert torch.equal(own.tensor, expected)
    if me()[0] == OWNER:
        remote.lend(1 << 12)
        dist.barrier()
        remote.lend(0)
    else:
        no_columns = remote.device(on=OWNER).empty(2, 0)
        no_columns.write_rows([1, 0], torch.empty(2, 0))
        assert no_columns.read_rows([1, 1, 0]).shape == (3, 0)
        dist.barrier()


@distributed(2, gloo_lacks=LACKS)
def test_bad_input_writes_nothing() -> None:
    with table("right") as (own, there), table("read", access="r") as (_, for_reading):
        if there is not None and for_reading is not None:
            two = some(2, 3)
            wrong = [
                (IndexError, "row 301 is not in", lambda: there.write_rows([0, ROWS], two)),
                (IndexError, "row -1", lambda: there.write_rows([-1, 0], two)),
                (IndexError, "without dimensions", lambda: there[0][0].write_rows([0, 1], two)),
                (TypeError, "rows has dtype torch.float32", lambda: there.write_rows([0.5], two)),
                (TypeError, "values is a list", lambda: there.write_rows([0], [1.0])),
                (ValueError, r"values has shape \(2, 67\)", lambda: there.write_rows([0], two)),
                (ValueError, "torch.int32", lambda: there.write_rows([0, 1], two.int())),
                (ValueError, "contiguous", lambda: there.write_rows([0, 1], some(4, 3)[::2])),
                (ValueError, "notify=0", lambda: there.write_rows([0, 1], two, notify=0)),
                (ValueError, "timeout=-1", lambda: there.write_rows([0, 1], two, timeout=-1)),
                (ValueError, "is for reading", lambda: for_reading.write_rows([0, 1], two)),
            ]
            for error, match, call in wrong:
                with pytest.raises(error, match=match):
                    call()
            there.write_rows([], two[:0], notify=3)
            with pytest.raises(ValueError, match="notify=3 is not larger than what 'right'"):
                there.write_rows([0, 1], two, notify=3)
            there.fence()
        dist.barrier()
        if own is not None:
            assert own.notified == 3 and not own.tensor.any()


@distributed(2, gloo_lacks=LACKS)
def test_revoked() -> None:
    if me()[0] == OWNER:
        exposure = remote.expose(remote.empty(4, 2, access="rw"), "gone", "rw")
        dist.barrier()
        assert exposure.revoke() == []
        dist.barrier()
        assert exposure.tensor.tolist() == [[0, 0], [1, 2], [0, 0], [0, 0]]
        return
    there = remote.open("gone", on=OWNER)
    there.write_rows([1], torch.tensor([[1.0, 2.0]]))
    dist.barrier()
    dist.barrier()
    with pytest.raises(remote.RevokedError):
        there.write_rows([2], torch.tensor([[1.0, 2.0]]))
