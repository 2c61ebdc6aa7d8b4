"""ps.EmbeddingBag and ps.Embedding against torch's, in a job of two workers. Where they are
compared each worker trains alone, a table of its own name.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn, optim

from rdmacoll import ps

ROWS, DIM, STEPS = 40, 6, 8
RTOL, ATOL = 1e-5, 1e-6  # of float32, after STEPS roundings of values near 1
INITIAL = ps.Normal(seed=1)


def own(name: str) -> str:
    return f"{name} of {dist.get_rank()}"


def assert_near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=RTOL, atol=ATOL)


def train_alike(name: str, ours: Any, theirs: Any, batches: list[tuple[Any, ...]]) -> None:
    """theirs: torch's module, of ROWS rows."""
    every_row = torch.arange(ROWS)
    with torch.no_grad():
        theirs.weight.copy_(ours._kv.row_pull(name, every_row))
    optimizer = optim.SGD(theirs.parameters(), lr=0.05)
    for step, batch in enumerate(batches):
        found, wanted = ours(*batch), theirs(*batch)
        assert_near(found, wanted)
        target = torch.sin(torch.arange(wanted.numel()) + step).view(wanted.shape)
        (found - target).square().sum().backward()
        optimizer.zero_grad()
        (wanted - target).square().sum().backward()
        optimizer.step()
    ours.wait()
    assert_near(ours._kv.row_pull(name, every_row), theirs.weight.detach())
    assert not list(ours.parameters()) and not ours.state_dict()


def bags(generator: torch.Generator, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(ROWS, (25,), generator=generator).to(kind)
    return ids, torch.tensor([0, 7, 7, 20, 25], dtype=kind)


def case_bags(_kv: ps.KV) -> None:
    generator = torch.Generator().manual_seed(dist.get_rank())
    sgd = ps.SGD(lr=0.05)
    for mode in "sum", "mean":
        for kind in torch.int64, torch.int32:
            name = own(f"{mode} {kind}")
            ours = ps.EmbeddingBag(name, DIM, ROWS, mode=mode, optimizer=sgd, initial=INITIAL)
            theirs = nn.EmbeddingBag(ROWS, DIM, mode=mode, sparse=True)
            batches = [bags(generator, kind) for _ in range(STEPS)]
            train_alike(name, ours, theirs, batches)
        name = own(f"{mode} 2d")
        ours = ps.EmbeddingBag(name, DIM, mode=mode, optimizer=sgd, initial=INITIAL)
        theirs = nn.EmbeddingBag(ROWS, DIM, mode=mode, sparse=True)
        table = [(torch.randint(ROWS, (5, 3), generator=generator),) for _ in range(STEPS)]
        train_alike(name, ours, theirs, table)
    assert ps.EmbeddingBag(own("mean 2d"), DIM, optimizer=sgd, initial=INITIAL)._mode == "mean"


def case_weighted_bags(_kv: ps.KV) -> None:
    """Weights get a gradient, too."""
    generator = torch.Generator().manual_seed(0)
    name = own("weighted")
    ours = ps.EmbeddingBag(name, DIM, ROWS, "sum", optimizer=ps.SGD(lr=0.05), initial=INITIAL)
    theirs = nn.EmbeddingBag(ROWS, DIM, mode="sum")
    batches = [(*bags(generator, torch.int64), torch.rand(25)) for _ in range(STEPS)]
    train_alike(name, ours, theirs, batches)
    ids, offsets = bags(generator, torch.int64)
    weights = torch.rand(25, requires_grad=True)
    gradients = [
        torch.autograd.grad(module(ids, offsets, weights).square().sum(), weights)[0]
        for module in (ours, theirs)
    ]
    assert_near(gradients[0], gradients[1])


def case_bags_that_end_with_an_offset(_kv: ps.KV) -> None:
    generator = torch.Generator().manual_seed(0)
    name = own("last")
    last: Any = {"mode": "sum", "include_last_offset": True}
    sgd: Any = {"optimizer": ps.SGD(lr=0.05), "initial": INITIAL}
    ours = ps.EmbeddingBag(name, DIM, ROWS, **last, **sgd)
    theirs = nn.EmbeddingBag(ROWS, DIM, **last)
    train_alike(name, ours, theirs, [bags(generator, torch.int64) for _ in range(STEPS)])


def case_embedding(_kv: ps.KV) -> None:
    name = own("embedding")
    ours = ps.Embedding(name, DIM, ROWS, optimizer=ps.SGD(lr=0.05), initial=INITIAL)
    generator = torch.Generator().manual_seed(0)
    batches = [(torch.randint(ROWS, (2, 3, 4), generator=generator),) for _ in range(STEPS)]
    train_alike(name, ours, nn.Embedding(ROWS, DIM), [*batches, (torch.tensor(5),)])
    assert "rows=40" in repr(ours)


def case_one_module_twice_in_a_model(_kv: ps.KV) -> None:
    name, ids = own("twice"), torch.tensor([1, 2, 1])
    ours = ps.Embedding(name, 1, optimizer=ps.SGD(lr=1.0))
    (ours(ids).sum() + 10 * ours(ids[:1]).sum()).backward()
    ours.wait()
    assert ours._kv.row_pull(name, [1, 2]).flatten().tolist() == [-12.0, -1.0]


def case_without_gradients_nothing_is_pushed(_kv: ps.KV) -> None:
    name = own("evaluated")
    ours = ps.Embedding(name, 2, optimizer=ps.SGD(lr=1.0), initial=INITIAL)
    with torch.no_grad():
        first = ours(torch.tensor([3]))
    assert not first.requires_grad
    assert torch.equal(ours(torch.tensor([3])), first)


def case_empty_batches(_kv: ps.KV) -> None:
    nothing = torch.empty(0, dtype=torch.int64)
    one = ps.Embedding(own("none"), DIM, optimizer=ps.SGD(lr=1.0))
    assert one(nothing).shape == (0, DIM)
    bag = ps.EmbeddingBag(own("no bags"), DIM, optimizer=ps.SGD(lr=1.0))
    for offsets in nothing, torch.zeros(2, dtype=torch.int64):
        out = bag(nothing, offsets)
        assert torch.equal(out, torch.zeros(len(offsets), DIM))
        out.sum().backward()
    bag.wait()


def case_all_workers_train_a_table(_kv: ps.KV) -> None:
    ids = torch.tensor([-(2**63), 7, 2**63 - 1, 7])
    ours = ps.EmbeddingBag("shared", 2, mode="sum", optimizer=ps.SGD(lr=1.0))
    for _ in range(STEPS):
        ours(ids.view(1, -1)).sum().backward()
    ours.wait()
    dist.barrier()
    steps = STEPS * dist.get_world_size()
    wanted = [[-1.0 * steps] * 2, [-2.0 * steps] * 2, [-1.0 * steps] * 2]
    assert ours._kv.row_pull("shared", ids[:3]).tolist() == wanted


def case_refusals(_kv: ps.KV) -> None:
    bag = ps.EmbeddingBag(own("bag"), DIM, ROWS)
    ids = torch.tensor([[1, 2]])
    for error, words, call in (
        (ValueError, "mode='max'; give \"sum\"", lambda: ps.EmbeddingBag("b", 2, mode="max")),
        (ValueError, "dim=0", lambda: ps.EmbeddingBag("b", 0)),
        (TypeError, "input has dtype torch.float32", lambda: bag(ids.float())),
        (TypeError, "input has dtype torch.bool", lambda: bag(ids.bool())),
        (TypeError, "input is a list", lambda: bag([1, 2])),
        (ValueError, "id 40 is not in table", lambda: bag(ids + 38)),
        (ValueError, "id -1 is not in table", lambda: bag(ids - 2)),
        (ValueError, "offsets has to be a 1D Tensor", lambda: bag(ids[0])),
        (ValueError, "another one for the worker", lambda: ps.Embedding(own("bag"), DIM + 1, ROWS)),
    ):
        with pytest.raises(error, match=words):
            call()
