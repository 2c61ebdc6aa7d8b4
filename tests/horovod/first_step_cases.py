"""What the first step of an optimizer settles: the order of buckets, and what is sparse.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from optimizer_face_cases import STEPS, batch, check_equal, sgd
from torch.nn import functional

import rdmacoll.horovod as hvd
from rdmacoll.horovod.names.compression import Compressor
from rdmacoll.horovod.training import gradients as gradients_module
from rdmacoll.horovod.training.buckets import cut
from rdmacoll.horovod.training.gradients import Gradients


class UsedOutOfOrder(torch.nn.Module):
    """Its layers are used in another order than they are made, and one is not used by all."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.last = torch.nn.Linear(5, 2)
        self.first = torch.nn.Linear(6, 5)
        self.of_some = torch.nn.Linear(5, 5)

    def forward(self, x: torch.Tensor, uses_all: bool) -> torch.Tensor:
        between = functional.relu(self.first(x))
        if uses_all:
            between = between + self.of_some(between)
        return self.last(between)


def one_each(order: list[torch.Tensor], groups: object, compression: type[Compressor]) -> object:
    return cut(order, [[p] for p in order], compression)


def with_short_buckets(run: Callable[[], None]) -> None:
    """Each parameter has a bucket of its own, so that their order can be seen."""
    before = gradients_module.cut
    gradients_module.cut = one_each  # type: ignore[assignment]
    try:
        run()
    finally:
        gradients_module.cut = before


def order_of(optimizer: object, model: torch.nn.Module) -> list[str]:
    gradients = optimizer._gradients  # type: ignore[attr-defined]
    assert isinstance(gradients, Gradients)
    names: dict[torch.Tensor, str] = {p: name for name, p in model.named_parameters()}
    return [names[p] for bucket in gradients._buckets for p in bucket.parameters]


def reference(ranks: int) -> torch.nn.Module:
    model = UsedOutOfOrder()
    optimizer = sgd(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(ranks):
            x, y = batch(step, rank)
            loss = functional.mse_loss(model(x, rank % 2 == 1 or step > 0), y) / ranks
            loss.backward()
        if step == 0 and ranks == 1:
            for p in model.of_some.parameters():
                p.grad = torch.zeros_like(p)  # as the optimizer of hvd has it
        optimizer.step()
    return model


def case_buckets_are_in_the_order_of_arrival() -> None:
    def run() -> None:
        model = UsedOutOfOrder()
        optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters())
        made = [name for name, _ in model.named_parameters()]
        assert order_of(optimizer, model) == made[::-1]
        for step in range(STEPS):
            optimizer.zero_grad()
            x, y = batch(step, hvd.rank())
            functional.mse_loss(model(x, hvd.rank() % 2 == 1 or step > 0), y).backward()
            optimizer.step()
        order = order_of(optimizer, model)
        assert all(name.startswith("last") for name in order[:2]), order
        assert all(name.startswith("first") for name in order[2:4]), order
        assert hvd.allgather_object(order) == [order] * hvd.size()
        check_equal(model, reference(hvd.size()))

    with_short_buckets(run)


def case_who_joins_before_the_first_step_settles_it_too() -> None:
    def run() -> None:
        model = UsedOutOfOrder()
        optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters())
        steps = 0 if hvd.rank() == 0 and hvd.size() > 1 else 3
        for step in range(steps):
            optimizer.zero_grad()
            x, y = batch(step, hvd.rank())
            functional.mse_loss(model(x, True), y).backward()
            optimizer.step()
        hvd.join()
        orders = hvd.allgather_object(order_of(optimizer, model))
        assert orders == orders[:1] * hvd.size()
        optimizer.zero_grad()
        functional.mse_loss(model(*batch(9, 0)[:1], True), batch(9, 0)[1]).backward()
        optimizer.step()
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    with_short_buckets(run)


def case_ranks_that_begin_anew_cut_as_at_first() -> None:
    def run() -> None:
        model = UsedOutOfOrder()
        optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters())
        for world in range(2):
            for step in range(2):
                optimizer.zero_grad()
                x, y = batch(step, hvd.rank())
                functional.mse_loss(model(x, True), y).backward()
                if world == 1 and step == 0:
                    assert order_of(optimizer, model)[0] == "of_some.bias"
                optimizer.step()
            assert order_of(optimizer, model)[0].startswith("last")
            hvd.shutdown()
            hvd.init()
        flat = torch.cat([p.detach().flatten() for p in model.parameters()])
        assert torch.equal(hvd.broadcast(flat, 0), flat)

    with_short_buckets(run)


# --- sparse gradients -----------------------------------------------------------------------------


def table_of() -> tuple[torch.nn.Embedding, torch.Tensor, torch.optim.Optimizer]:
    torch.manual_seed(0)
    table = torch.nn.Embedding(8, 2, sparse=True)
    weight = table.weight.detach().clone()
    optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
    return table, weight, hvd.DistributedOptimizer(optimizer)


def case_a_sparse_gradient_leaves_its_bucket() -> None:
    table, expected, optimizer = table_of()
    for _ in range(2):  # worlds
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([hvd.rank()])).sum().backward()
            optimizer.step()
            assert table.weight.grad is not None and table.weight.grad.is_sparse
            expected[: hvd.size()] -= 1.0 / hvd.size()
        assert torch.allclose(table.weight, expected, atol=1e-6)
        gradients = optimizer._gradients  # type: ignore[attr-defined]
        assert [bucket.memory.numel() for bucket in gradients._buckets] == [1]
        assert hvd.join() >= 0
        hvd.shutdown()
        hvd.init()


def case_a_rank_that_has_no_sparse_gradient_adds_zeros() -> None:
    """Whichever it is, and in whichever step."""
    for without in range(hvd.size()):
        table, expected, optimizer = table_of()
        for step in range(3):
            optimizer.zero_grad()
            if hvd.rank() != (without + step) % hvd.size():
                table(torch.tensor([hvd.rank()])).sum().backward()
            optimizer.step()
            for rank in range(hvd.size()):
                if rank != (without + step) % hvd.size():
                    expected[rank] -= 1.0 / hvd.size()
        assert torch.allclose(table.weight, expected, atol=1e-6)


def case_dense_on_one_rank_and_sparse_on_others() -> None:
    table, expected, optimizer = table_of()
    for _ in range(3):
        optimizer.zero_grad()
        if hvd.rank() == 0:
            table.weight.sum().backward()
        else:
            table(torch.tensor([hvd.rank()])).sum().backward()
        optimizer.step()
        expected -= 1.0 / hvd.size()
        expected[1 : hvd.size()] -= 1.0 / hvd.size()
    assert torch.allclose(table.weight, expected, atol=1e-5)


def case_sparse_after_a_first_step_without_it() -> None:
    table, expected, optimizer = table_of()
    for step in range(3):
        optimizer.zero_grad()
        if step > 0 and hvd.rank() == 0:
            table(torch.tensor([3])).sum().backward()
            expected[3] -= 1.0 / hvd.size()
        elif step > 0:
            expected[3] -= 1.0 / hvd.size()
        optimizer.step()
    assert torch.allclose(table.weight, expected, atol=1e-6)
