"""ps.Optimizer against torch's optimizers, in a job of two workers. Where they are compared each
worker trains alone, a model of its own name.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn, optim

from rdmacoll import ps

STEPS = 10
RTOL, ATOL = 1e-5, 1e-6  # of float32, after STEPS roundings of values near 1


def own(name: str) -> str:
    return f"{name} of {dist.get_rank()}"


def model(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def train(net: nn.Module, optimizer: optim.Optimizer) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        inputs = torch.randn(32, 8, generator=generator)
        optimizer.zero_grad()
        net(inputs).square().mean().backward()
        optimizer.step()


def assert_same(net: nn.Module, other: nn.Module, what: object = "") -> None:
    for (name, found), wanted in zip(net.named_parameters(), other.parameters(), strict=True):
        near = torch.allclose(found, wanted, rtol=RTOL, atol=ATOL)
        assert near, (what, name, found, wanted)


def case_trains_as_torch_does(_kv: ps.KV) -> None:
    variants: list[tuple[Any, type[optim.Optimizer], dict[str, Any]]] = [
        (ps.SGD, optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        (ps.SGD, optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
        (ps.Adagrad, optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1}),
        (ps.Adam, optim.Adam, {"lr": 0.01, "betas": (0.8, 0.99), "weight_decay": 0.1}),
        (ps.AdamW, optim.AdamW, {"lr": 0.01}),
    ]
    for number, (rule, kind, options) in enumerate(variants):
        net = model()
        wanted, same = copy.deepcopy(net), copy.deepcopy(net)
        train(wanted, kind(wanted.parameters(), **options))
        how: Any = {"foreach": False, "fused": None, "amsgrad": False} if rule is ps.Adam else {}
        train(net, ps.Optimizer(net.parameters(), kind, name=own(f"a{number}"), **options, **how))
        train(same, ps.Optimizer(same.parameters(), rule(**options), name=own(f"b{number}")))
        assert_same(net, wanted, (kind, options))
        assert all(
            torch.equal(a, b) for a, b in zip(net.parameters(), same.parameters(), strict=True)
        )


def groups(net: nn.Sequential) -> list[dict[str, Any]]:
    return [
        {"params": net[0].parameters(), "lr": 0.5},
        {"params": net[2].parameters(), "momentum": 0.5, "initial_lr": 3.0},
    ]


def case_groups_with_hyperparameters_of_their_own(_kv: ps.KV) -> None:
    net = model()
    wanted = copy.deepcopy(net)
    train(wanted, optim.SGD(groups(wanted), lr=0.1))
    train(net, ps.Optimizer(groups(net), optim.SGD, name=own("groups"), lr=0.1))
    assert_same(net, wanted)


def case_frozen_parameters(_kv: ps.KV) -> None:
    net = model()
    net[0].weight.requires_grad_(False)
    wanted = copy.deepcopy(net)
    train(wanted, optim.Adam(wanted.parameters(), lr=0.01))
    train(net, ps.Optimizer(net.parameters(), optim.Adam, name=own("frozen"), lr=0.01))
    assert_same(net, wanted)


def large_and_small() -> nn.ParameterList:
    """Large ones are pulled where they are; the others, and what is not contiguous, are copied."""
    generator = torch.Generator().manual_seed(2)
    shapes = [(3,), (300, 300), (2, 2), (5,), (70_000,), (280, 260), (7,)]
    all_of_them = [torch.randn(shape, generator=generator) for shape in shapes]
    all_of_them[5] = all_of_them[5].t()
    return nn.ParameterList(all_of_them)


def case_large_parameters(_kv: ps.KV) -> None:
    for frozen in (), (1,), (0, 4), (6,):
        ours, theirs = large_and_small(), large_and_small()
        for net in ours, theirs:
            for number in frozen:
                net[number].requires_grad_(False)
        name = own(f"large but {frozen}")
        pairs = [
            (ours, ps.Optimizer(ours.parameters(), optim.Adam, name=name, lr=0.01)),
            (theirs, optim.Adam(theirs.parameters(), lr=0.01)),
        ]
        assert_same(ours, theirs, frozen)
        for step in range(3):
            versions = [parameter._version for parameter in ours]
            for net, optimizer in pairs:
                for number, parameter in enumerate(net):
                    gradient = torch.full_like(parameter, (step + 1.0) * (number - 3))
                    parameter.grad = gradient if parameter.requires_grad else None
                optimizer.step()
            assert_same(ours, theirs, (frozen, step))
            # A backward through what it has changed is refused, as with torch's optimizers.
            for parameter, version in zip(ours, versions, strict=True):
                assert parameter._version > version


def case_parameters_without_a_gradient(_kv: ps.KV) -> None:
    """Such are left as they are, weight decay or not."""
    nets = [nn.ParameterList([torch.ones(5), torch.ones(3), torch.ones(2, 2)]) for _ in range(2)]
    options: Any = {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.1}
    ours = ps.Optimizer(nets[0].parameters(), optim.SGD, name=own("some"), **options)
    theirs = optim.SGD(nets[1].parameters(), **options)
    for has_gradient in ((0, 2), (1,), (), (0, 1, 2), (0, 1)):
        for net, optimizer in (nets[0], ours), (nets[1], theirs):
            for number, parameter in enumerate(net):
                wanted = torch.full_like(parameter, number + 1.0)
                parameter.grad = wanted if number in has_gradient else None
            optimizer.step()
        assert_same(nets[0], nets[1], has_gradient)


def case_what_counts_steps_has_all_gradients_or_none(_kv: ps.KV) -> None:
    net = model()
    for number, kind in enumerate((optim.Adam, optim.AdamW)):
        optimizer = ps.Optimizer(net.named_parameters(), kind, name=own(f"counts {number}"))
        before = copy.deepcopy(net)
        optimizer.zero_grad()
        optimizer.step()  # none
        net[2].bias.grad = torch.ones(4)
        for words in "parameter 0.weight of .* has no gradient, unlike others; Adam", "of its own":
            with pytest.raises(ValueError, match=words):
                optimizer.step()
        assert all(
            torch.equal(a, b) for a, b in zip(net.parameters(), before.parameters(), strict=True)
        )


def everyones(net: nn.Module) -> list[list[torch.Tensor]]:
    all_of_them: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(all_of_them, [one.detach() for one in net.parameters()])
    return all_of_them


def case_all_begin_with_the_first_ones_values(_kv: ps.KV) -> None:
    net = model(seed=dist.get_rank())
    ps.Optimizer(net.parameters(), ps.SGD(), name="begun")
    first = everyones(model(seed=dist.get_rank()))
    everyone = everyones(net)
    assert all(
        torch.equal(mine, other)
        for theirs in everyone
        for mine, other in zip(everyone[0], theirs, strict=True)
    )
    assert any(torch.equal(everyone[0][0], theirs[0]) for theirs in first)


def case_each_workers_step_is_a_step(_kv: ps.KV) -> None:
    net = nn.ParameterList([torch.zeros(10), torch.zeros(3, 300_000).t().contiguous().t()])
    optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=1.0), mode=ps.Async(), name="counted")
    assert not net[1].is_contiguous()
    for step in range(STEPS):
        for parameter in net:
            parameter.grad = torch.full_like(parameter, float(step + dist.get_rank()))
        optimizer.step()
    dist.barrier()
    optimizer.zero_grad()
    optimizer.step()  # pulls, as it has nothing to push
    workers = range(dist.get_world_size())
    total = -float(sum(step + worker for step in range(STEPS) for worker in workers))
    assert [one.unique().tolist() for one in net] == [[total], [total]]


def case_it_is_a_torch_optimizer(_kv: ps.KV) -> None:
    net = model()
    optimizer = ps.Optimizer(net.parameters(), ps.SGD(lr=0.1), name=own("face"))
    assert isinstance(optimizer, optim.Optimizer) and "lr: 0.1" in repr(optimizer)
    called: list[str] = []
    optimizer.register_step_post_hook(lambda *_: called.append("hook"))

    def closure() -> torch.Tensor:
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss: torch.Tensor = net(torch.ones(1, 8)).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(2)]
    assert losses[1] < losses[0] and called == ["hook", "hook"]


def refused(*refusals: tuple[type[Exception], str, Callable[[], object]]) -> None:
    for error, words, call in refusals:
        with pytest.raises(error, match=words):
            call()


def case_refusals(_kv: ps.KV) -> None:
    net = model()
    ours: Any = ps.Optimizer

    def make(optimizer: Any, params: Any = None, **options: Any) -> Callable[[], object]:
        return lambda: ours(params or net.parameters(), optimizer, name=own("refused"), **options)

    double = model().double()
    adam = optim.Adam
    refused(
        (TypeError, "parameter 0.weight of .* has dtype torch.float64", make(
            ps.SGD(), double.named_parameters())),
        (TypeError, "parameter 0 of .* torch.float64", make(ps.SGD(), double.parameters())),
        (TypeError, "parameter 1 of .* on meta", make(ps.SGD(), [
            net[0].bias, torch.empty(3, device="meta", requires_grad=True)])),
        (ValueError, "empty parameter list", make(ps.SGD(), iter([]))),
        (TypeError, "optimizer is RMSprop; give one of", make(optim.RMSprop)),
        (TypeError, "optimizer is SGD; give one of", make(optim.SGD(net.parameters()))),
        (TypeError, "optimizer is str", make("adam")),
        (TypeError, "lr: give them to SGD", make(ps.SGD(), lr=1.0)),
        (TypeError, "momentum is no argument of torch.optim.Adam", make(adam, momentum=0.9)),
        (TypeError, "lr is a tensor", make(adam, lr=torch.tensor(0.1))),
        (TypeError, "mode is str; give ps.Async", make(adam, mode="async")),
        (ValueError, "lr is -1", make(adam, lr=-1.0)),
        (ValueError, "momentum is -2", make(ps.SGD(), [
            {"params": [net[0].bias]}, {"params": [net[0].weight], "momentum": -2.0}])),
        (NotImplementedError, "amsgrad=True; leave it out", make(adam, amsgrad=True)),
        (NotImplementedError, "amsgrad=True", make(adam, [
            {"params": [net[0].bias], "amsgrad": True}])),
        (NotImplementedError, "decoupled_weight_decay=True; take AdamW", make(
            adam, decoupled_weight_decay=True)),
        (NotImplementedError, "differentiable=True", make(adam, differentiable=True)),
        (ValueError, "for tables of rows", make(ps.RowwiseAdagrad())),
    )  # fmt: skip
    optimizer = ps.Optimizer(net.parameters(), adam, name=own("made"))
    more = {"params": [torch.zeros(1, requires_grad=True)]}
    refused(
        (NotImplementedError, "make another ps.Optimizer", lambda: optimizer.add_param_group(more)),
        (NotImplementedError, r"ps.snapshot\(\) writes it", optimizer.state_dict),
        (NotImplementedError, r"ps.restore\(\) gives", lambda: optimizer.load_state_dict({})),
    )
    table = nn.Embedding(4, 2, sparse=True)
    sparse = ps.Optimizer(table.parameters(), ps.SGD(), name=own("sparse"))
    table(torch.tensor([1])).sum().backward()
    refused((ValueError, "parameter 0 of .*sparse_coo; .* or ps.EmbeddingBag", sparse.step))


def case_two_models_of_a_process(kv: ps.KV) -> None:
    """Of the same shapes they would be one at the servers."""
    own = f"two models {dist.get_rank()}"
    first, second = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    made = [ps.Optimizer(first.parameters(), ps.SGD(lr=1.0), name=own)]
    with pytest.raises(ValueError, match=f"name='{own}' is that of another optimizer"):
        ps.Optimizer(second.parameters(), ps.SGD(lr=1.0), name=own)
    made.append(ps.Optimizer(first.parameters(), ps.SGD(lr=1.0), name=own))  # of the same model
    kv.drop(own)
    before = second.weight.clone()
    for _ in range(2):
        made.append(ps.Optimizer(second.parameters(), ps.SGD(lr=1.0), name=own))
    assert torch.equal(second.weight, before) and not torch.equal(first.weight, before)
    of_another_group = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    made.append(ps.Optimizer(first.parameters(), ps.SGD(lr=1.0), name=own, group=of_another_group))
    assert torch.equal(first.weight, before)


def case_another_model_than_the_first_workers(_kv: ps.KV) -> None:
    """Even one with as many elements."""
    shapes = [(2, 6), (3, 4)]
    if dist.get_rank() == 0:
        ps.Optimizer([torch.zeros(shapes[0], requires_grad=True)], ps.SGD(), name="alike")
    dist.barrier()
    if dist.get_rank() == 1:
        other = [torch.zeros(shapes[1], requires_grad=True)]
        words = "first to make the optimizer 'alike' has other parameters"
        refused((ValueError, words, lambda: ps.Optimizer(other, ps.SGD(), name="alike")))
