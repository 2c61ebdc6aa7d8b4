"""What trains, against one process with the batches of all ranks. Floor: tests."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import torch
from named_operation_cases import raises
from torch.nn import functional

import rdmacoll.horovod as hvd

STEPS = 4


def model_of(seed: int) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(4, 6, generator=generator), torch.randn(4, 2, generator=generator)


def sgd(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def alone(ranks: int, passes: int = 1) -> torch.nn.Module:
    """The same training by one process."""
    model = model_of(0)
    optimizer = sgd(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(ranks):
            for one in range(passes):
                x, y = batch(step * passes + one, rank)
                (functional.mse_loss(model(x), y) / ranks).backward()
        optimizer.step()
    return model


def train(passes: int = 1, **options: Any) -> torch.nn.Module:
    model = model_of(hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        sgd(model),
        named_parameters=model.named_parameters(),
        backward_passes_per_step=passes,
        **options,
    )
    for step in range(STEPS):
        optimizer.zero_grad()
        for one in range(passes):
            x, y = batch(step * passes + one, hvd.rank())
            functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


def check_equal(model: torch.nn.Module, expected: torch.nn.Module, atol: float = 1e-6) -> None:
    for own, other in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(own, other, atol=atol), (own - other).abs().max()
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    everyones = hvd.allgather(flat.unsqueeze(0))
    assert torch.equal(everyones, everyones[0].expand_as(everyones)), "ranks hold other bits"


def case_trains_as_one_process_would() -> None:
    check_equal(train(), alone(hvd.size()))


def case_backward_passes() -> None:
    check_equal(train(passes=3), alone(hvd.size(), passes=3), atol=1e-5)


def case_groups_and_predivision() -> None:
    expected = alone(hvd.size())
    check_equal(train(groups=2), expected)
    check_equal(train(gradient_predivide_factor=2.0), expected)


def case_compression() -> None:
    check_equal(train(compression=hvd.Compression.fp16), alone(hvd.size()), atol=1e-2)


def case_a_rank_without_gradients_adds_zeros() -> None:
    layers = [torch.nn.Linear(2, 1, bias=False) for _ in range(hvd.size())]
    weights = [layer.weight for layer in layers]
    hvd.broadcast_parameters([(str(i), one.data) for i, one in enumerate(weights)], root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0))
    before = [weight.detach().clone() for weight in weights]
    optimizer.zero_grad()
    layers[hvd.rank()](torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for weight, old in zip(weights, before, strict=True):
        assert torch.allclose(weight, old - 1.0 / hvd.size())


def case_two_optimizers_and_a_part_that_is_frozen() -> None:
    one, other = model_of(0), model_of(1)
    optimizers = [hvd.DistributedOptimizer(sgd(model)) for model in (one, other)]
    for step in range(STEPS):
        trained, model = optimizers[step % 2], (one, other)[step % 2]
        trained.zero_grad()
        x, y = batch(step, hvd.rank())
        functional.mse_loss(model(x), y).backward()
        trained.step()
    check_equal(one, one)
    check_equal(other, other)


def backward_of_both(step: int, model: torch.nn.Module, expected: torch.nn.Module) -> None:
    """The model's by this rank's batch, and the other's by those of all."""
    x, y = batch(step, hvd.rank())
    functional.mse_loss(model(x), y).backward()
    for rank in range(hvd.size()):
        x, y = batch(step, rank)
        (functional.mse_loss(expected(x), y) / hvd.size()).backward()


def case_parameters_that_come_later() -> None:
    model, expected = model_of(0), model_of(0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model[0].parameters(), lr=0.1))
    reference = torch.optim.SGD(expected[0].parameters(), lr=0.1)
    for step in range(STEPS):
        if step == 1:
            optimizer.add_param_group({"params": list(model[2].parameters())})
            reference.add_param_group({"params": list(expected[2].parameters())})
        optimizer.zero_grad()
        model.zero_grad()
        expected.zero_grad()
        backward_of_both(step, model, expected)
        if step == 0:
            raises(
                AssertionError,
                lambda: optimizer.add_param_group({"params": list(model[2].parameters())}),
                "before backward()",
            )
        optimizer.step()
        reference.step()
    check_equal(model, expected)


def case_parameters_that_are_trained_later() -> None:
    """As where the last layers of a model are trained alone at first."""
    model, expected = model_of(0), model_of(0)
    for one in (model, expected):
        one[0].requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters())
    reference = sgd(expected)
    for step in range(STEPS):
        if step == 2:
            model[0].requires_grad_(True)
            expected[0].requires_grad_(True)
        optimizer.zero_grad()
        reference.zero_grad()
        backward_of_both(step, model, expected)
        optimizer.step()
        reference.step()
    check_equal(model, expected)
    assert hvd.join() >= 0


def case_sparse_gradients() -> None:
    for as_dense in (False, True):
        torch.manual_seed(0)
        table = torch.nn.Embedding(8, 2, sparse=True)
        expected = table.weight.detach().clone()
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(table.parameters(), lr=1.0), sparse_as_dense=as_dense
        )
        for _ in range(2):
            optimizer.zero_grad()
            table(torch.tensor([hvd.rank(), hvd.rank() + 1])).sum().backward()
            optimizer.step()
            for rank in range(hvd.size()):
                expected[[rank, rank + 1]] -= 1.0 / hvd.size()
        assert torch.allclose(table.weight, expected, atol=1e-6), as_dense


def case_clipping_between_synchronize_and_step() -> None:
    model = model_of(0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    optimizer.zero_grad()
    functional.mse_loss(model(batch(0, hvd.rank())[0]), batch(0, hvd.rank())[1]).backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    with optimizer.skip_synchronize():
        optimizer.step()
    check_equal(model, model)


def case_misuse_is_said() -> None:
    model = model_of(0)
    optimizer = hvd.DistributedOptimizer(sgd(model))
    x, y = batch(0, hvd.rank())
    functional.mse_loss(model(x), y).backward()
    raises(AssertionError, optimizer.zero_grad, "before backward()")
    raises(
        AssertionError,
        lambda: functional.mse_loss(model(x), y).backward(),
        "backward_passes_per_step",
    )
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        optimizer.step()
    assert len(said) == 1 and "skip_synchronize" in str(said[0].message)
    named = list(model.named_parameters())
    make = hvd.DistributedOptimizer
    raises(ValueError, lambda: make(sgd(model), named_parameters=named + named[:1]), "twice")
    raises(ValueError, lambda: make(sgd(model), named_parameters=named[1:]), "lack 1")
    raises(ValueError, lambda: make(sgd(model), backward_passes_per_step=0), "1 or more")
    weights: Any = model.parameters()
    raises(ValueError, lambda: make(weights), "give one of torch.optim")
    raises(
        ValueError,
        lambda: make(sgd(model), op=hvd.Sum, gradient_predivide_factor=2.0),
        "hvd.Average",
    )


def case_ranks_with_fewer_batches_join() -> None:
    model = model_of(0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    reference = model_of(0)
    other = torch.optim.SGD(reference.parameters(), lr=0.1)
    for step in range(hvd.size()):
        other.zero_grad()
        for rank in range(step, hvd.size()):  # rank r has r + 1 batches
            x, y = batch(step, rank)
            (functional.mse_loss(reference(x), y) / hvd.size()).backward()
        other.step()
    for step in range(hvd.rank() + 1):
        optimizer.zero_grad()
        x, y = batch(step, hvd.rank())
        functional.mse_loss(model(x), y).backward()
        optimizer.step()
    last = hvd.join()
    assert last == hvd.size() - 1, "it has made the last step"
    hvd.broadcast_parameters(model.state_dict(), root_rank=last)
    check_equal(model, reference)


def case_who_joins_before_its_first_step() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), op=hvd.Sum)
    for _ in range(hvd.rank()):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
    assert hvd.join() == hvd.size() - 1
    if hvd.rank() == hvd.size() - 1:
        steps = hvd.size() - 1
        assert weight[0].item() == 1.0 - sum(range(steps + 1))


def case_state_that_is_loaded_in_the_middle_of_a_step() -> None:
    model = model_of(0)
    is_slow, is_through = hvd.rank() == 0, Path("rank_0_is_through")

    def take_long(_: torch.Tensor) -> None:
        time.sleep(0.3)
        is_through.touch()

    slow = next(model.parameters()).register_hook(take_long) if is_slow else None
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    before = optimizer.state_dict()
    functional.mse_loss(model(batch(9, hvd.rank())[0]), batch(9, hvd.rank())[1]).backward()
    optimizer.load_state_dict(before)
    assert is_through.exists(), "this rank has given up what rank 0 is about to begin"
    if slow is not None:
        slow.remove()
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(step, hvd.rank())
        functional.mse_loss(model(x), y).backward()
        optimizer.step()
    check_equal(model, alone(hvd.size()))


def case_join_with_any_operation() -> None:
    for op in (hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.1), op=op)
        for _ in range(hvd.rank() + 1):
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
        assert hvd.join() == hvd.size() - 1, op


def case_optimizer_state() -> None:
    model = model_of(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * (1 + hvd.rank()))
    if hvd.rank() == 0:
        functional.mse_loss(model(batch(0, 0)[0]), batch(0, 0)[1]).backward()
        optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.01
    steps = [optimizer.state[p]["step"].item() for p in model.parameters()]
    assert steps == [1.0] * 4
    moment = optimizer.state[next(model.parameters())]["exp_avg"]
    assert torch.equal(hvd.broadcast(moment, 0), moment)
    raises(
        ValueError,
        lambda: hvd.broadcast_optimizer_state(torch.optim.LBFGS(model.parameters()), 0),
        "LBFGS",
    )


def case_objects() -> None:
    own = {"rank": hvd.rank(), "values": list(range(hvd.rank()))}
    for root in range(hvd.size()):
        sent = hvd.broadcast_object(own, root)
        assert sent == {"rank": root, "values": list(range(root))}
    assert [one["rank"] for one in hvd.allgather_object(own)] == list(range(hvd.size()))


def case_sync_batch_norm() -> None:
    for shape in ((4, 3), (4, 3, 5), (2, 3, 4, 2)):
        generator = torch.Generator().manual_seed(7)
        all_of = torch.randn(hvd.size(), *shape, generator=generator)
        whole = all_of.flatten(0, 1).clone().requires_grad_()
        own = all_of[hvd.rank()].clone().requires_grad_()
        reference = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}[
            len(shape)
        ](3)
        layer = hvd.SyncBatchNorm(3)
        expected = reference(whole).unflatten(0, (hvd.size(), shape[0]))
        got = layer(own)
        assert torch.allclose(got, expected[hvd.rank()], atol=1e-5)
        for own_buffer, expected_buffer in zip(layer.buffers(), reference.buffers(), strict=True):
            assert torch.allclose(own_buffer, expected_buffer, atol=1e-5)
        (expected**2).sum().backward()
        (got**2).sum().backward()
        assert own.grad is not None and whole.grad is not None
        of_own = whole.grad.unflatten(0, (hvd.size(), shape[0]))[hvd.rank()]
        assert torch.allclose(own.grad, of_own, atol=1e-4)
        layer.eval()
        assert layer(own).shape == own.shape


def case_adasum_optimizer() -> None:
    n = hvd.size()
    if n & (n - 1):
        return
    model = model_of(0)
    optimizer = hvd.DistributedOptimizer(sgd(model), op=hvd.Adasum)
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(step, 0)  # all ranks have the same: it counts once
        functional.mse_loss(model(x), y).backward()
        optimizer.step()
    check_equal(model, alone(1), atol=1e-5)
