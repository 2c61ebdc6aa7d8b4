"""all_reduce of sparse tensors: the union of the indices, values at common ones added."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from cases import done, me
from harness import ALL_WORLDS, distributed
from torch import Tensor


def sparse(rank: int, dtype: torch.dtype, entries: int) -> Tensor:
    rows = (torch.arange(entries) * 3 + rank) % 10
    columns = (torch.arange(entries) + rank) % 4
    numbers = torch.arange(entries * 2).reshape(entries, 2) + rank
    indices = torch.stack([rows, columns])
    return torch.sparse_coo_tensor(indices, numbers.to(dtype), (10, 4, 2))


@distributed(*ALL_WORLDS)
def test_sum() -> None:
    rank, world = me()
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16):
        for entries in (1, 7):
            for asynchronous in (False, True):
                tensor = sparse(rank, dtype, entries)
                done(dist.all_reduce(tensor, async_op=asynchronous))
                dense = [sparse(peer, dtype, entries).to_dense() for peer in range(world)]
                assert torch.equal(tensor.to_dense(), sum(dense[1:], dense[0])), (dtype, entries)


@distributed(2, 3)
def test_different_numbers_of_entries() -> None:
    rank, world = me()
    tensor = sparse(rank, torch.float32, 2 * rank)
    dist.all_reduce(tensor)
    dense = [sparse(peer, torch.float32, 2 * peer).to_dense() for peer in range(world)]
    assert torch.equal(tensor.to_dense(), sum(dense[1:], dense[0]))


@distributed(2)
def test_other_operations_raise() -> None:
    rank, _ = me()
    with pytest.raises(RuntimeError, match="(?i)sparse"):
        dist.all_reduce(sparse(rank, torch.float32, 3), dist.ReduceOp.MAX)


@distributed(2, gloo_lacks="does not look at the layout")
def test_other_layouts_raise() -> None:
    with pytest.raises((RuntimeError, ValueError), match="(?i)layout|sparse|csr"):
        dist.all_reduce(torch.eye(3).to_sparse_csr())


@distributed(2, fresh=True, gloo_lacks="prints the tensors")
def test_different_shapes_raise_and_are_named() -> None:
    rank, _ = me()
    tensor = torch.sparse_coo_tensor([[0]], [1.0], (10 + rank,))
    with pytest.raises(
        RuntimeError,
        match=r"rank 0 has \[10\].*, rank 1 has \[11\]|"
        r"rank 1 has \[11\].*, rank 0 has \[10\]",
    ) as caught:
        dist.all_reduce(tensor)
    assert "Tensor" not in str(caught.value) and str(caught.value).count("\n") < 3


@distributed(2, fresh=True, gloo_lacks="prints the tensors")
def test_different_kinds_of_dimensions_raise_and_are_named() -> None:
    rank, _ = me()
    tensor = torch.eye(3).to_sparse(2 - rank)
    with pytest.raises(
        RuntimeError,
        match="2 sparse and 0 dense.*1 sparse and 1 dense|"
        "1 sparse and 1 dense.*2 sparse and 0 dense",
    ):
        dist.all_reduce(tensor)
