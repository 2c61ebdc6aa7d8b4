"""The check and the figures: what is a wrong result, and what is made of the times of all ranks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rdmacoll.bench.case import Case, Place, WrongResult
from rdmacoll.bench.measure import summarize
from rdmacoll.bench.operations import OPERATIONS
from rdmacoll.bench.options import ELEMENT_BYTES, REDUCTIONS
from rdmacoll.bench.values import PERIOD, Piece, Values

RANKS = 3
ELEMENTS = RANKS * (PERIOD + 10)
WITH_RESULT = [name for name in OPERATIONS if name != "barrier"]


def right(case: Case, values: Values) -> None:
    """Does what the operation should."""
    case.fill()
    for number, piece in enumerate(case.expected()):
        case.output[number * case.part : (number + 1) * case.part] = values(piece)


@pytest.mark.parametrize("operation", WITH_RESULT)
def test_one_wrong_element(operation: str) -> None:
    values = Values(RANKS, torch.float32, "sum")
    case = Case(operation, ELEMENTS, values, Place(0, RANKS), in_place=False)
    right(case, values)
    case.check("us")
    last = case.output.numel() - 1
    case.output[last] += 1
    with pytest.raises(WrongResult, match=f"us computes something else: {operation} .*{last}"):
        case.check("us")


@pytest.mark.parametrize("operation", ["all_gather", "all_to_all", "gather"])
def test_parts_in_another_order(operation: str) -> None:
    values = Values(RANKS, torch.float32, "sum")
    case = Case(operation, ELEMENTS, values, Place(0, RANKS), in_place=False)
    right(case, values)
    case.output.copy_(case.output.roll(case.part))
    with pytest.raises(WrongResult):
        case.check("us")


@pytest.mark.parametrize("operation", WITH_RESULT)
def test_nothing_done(operation: str) -> None:
    values = Values(RANKS, torch.int32, "sum")
    case = Case(operation, ELEMENTS, values, Place(1, RANKS), in_place=False)
    case.fill()
    if operation in ("reduce", "gather"):
        assert case.expected() == []  # the result is the root's
        return
    with pytest.raises(WrongResult, match="on rank 1: element"):
        case.check("us")


@pytest.mark.parametrize("dtype", ELEMENT_BYTES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reductions_are_exact(dtype: str, reduction: str) -> None:
    """In any order of the ranks, here the type's own from the last to the first."""
    kind = getattr(torch, dtype)
    assert kind.itemsize == ELEMENT_BYTES[dtype]
    values = Values(RANKS, kind, reduction)
    names = {"sum": "add", "product": "mul", "min": "minimum", "max": "maximum"}
    fold: Any = getattr(torch, names[reduction])
    result = values(Piece(RANKS - 1, 5, 2000))
    for rank in reversed(range(RANKS - 1)):
        result = fold(result, values(Piece(rank, 5, 2000)))
    assert torch.equal(result, values(Piece(None, 5, 2000)))


def test_in_place_is_one_tensor() -> None:
    values = Values(RANKS, torch.float32, "sum")
    gather = Case("all_gather", ELEMENTS, values, Place(1, RANKS), in_place=True)
    assert gather.input.data_ptr() == gather.output[gather.part :].data_ptr()
    scatter = Case("reduce_scatter", ELEMENTS, values, Place(1, RANKS), in_place=True)
    assert scatter.output.data_ptr() == scatter.input[scatter.part :].data_ptr()


def test_summary() -> None:
    """Two ranks, three turns and the p99: each turn counts with its slowest rank."""
    ours = torch.tensor([[1.0, 5.0, 1.0, 9.0], [2.0, 1.0, 4.0, 7.0]])
    theirs = torch.tensor([[4.0, 5.0, 40.0, 50.0], [1.0, 1.0, 1.0, 60.0]])
    row = summarize("all_gather", 8000, {"rdma": ours, "gloo": theirs})
    rdma, gloo = row.systems["rdma"], row.systems["gloo"]
    assert (rdma.p50_us, rdma.p99_us, rdma.root_p50_us) == (4.0, 9.0, 1.0)
    assert (rdma.algbw_gb_per_s, rdma.busbw_gb_per_s, rdma.times_slower) == (2.0, 1.0, 1.0)
    assert (gloo.p50_us, gloo.p99_us, gloo.times_slower) == (5.0, 60.0, 2.0)


def test_bus_factors() -> None:
    assert OPERATIONS["all_reduce"].bus(4) == 1.5
    assert OPERATIONS["reduce_scatter"].bus(4) == 0.75
    assert OPERATIONS["broadcast"].bus(4) == 1.0
