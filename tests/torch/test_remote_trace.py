"""What goes by mailbox: what a plan leaves dynamic, and what trace() learns at first."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from test_remote import LACKS
from test_remote_plan import ROUNDS, Model, batch, close, counters
from torch import nn

from rdmacoll import remote


class Data(nn.Module):
    """Of a batch of any size; what crosses has a shape of its own, or is a number."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first = nn.Linear(6, 7)
        self.last = nn.Linear(7, 3)

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        wide = torch.tanh(weight)
        rows = hidden.nonzero()
        return self.last(hidden) * x.shape[0] + rows.double().sum() + wide.sum()


@distributed(2, gloo_lacks=LACKS)
def test_what_a_plan_leaves_dynamic_goes_by_mailbox() -> None:
    rank, _ = me()
    whole = Data()
    x, _ = batch(0)
    shapes = {"x": {0: torch.export.Dim("batch")}, "weight": None}
    program = torch.export.export(whole, (x, torch.ones(50)), dynamic_shapes=shapes)
    plan = remote.plan(program, ["nonzero"])
    assert {one.why_dynamic.partition(" (")[0] for one in plan.crossing} == {
        "",
        "not a tensor, but of type SymInt",
        "its shape depends on data",
        "its shape is symbolic",
    }
    end = plan.sender("dynamic", to=1) if rank == 0 else plan.receiver("dynamic", of=0)
    weight = torch.linspace(-1, 1, 50)
    with torch.no_grad():
        for round in range(ROUNDS):
            x, _ = batch(round, rows=3 + round % 3)
            if rank == 0:
                values = plan.stage(0)(x=x, weight=weight)
                end.send(values)
                for value in values.values():
                    if isinstance(value, torch.Tensor) and value is not weight:
                        value.fill_(-1)  # which is the caller's again
            else:
                (result,) = plan.stage(1)(**end.receive()).values()
                assert torch.equal(result, whole(x, weight))
    static = sum(one.is_static for one in plan.crossing)
    dynamic = len(plan.crossing) - static
    assert end.stats["mailed"] == dynamic * ROUNDS
    if rank == 0:
        assert end.stats["writes"] == static * ROUNDS
        sizes = {one.name: 1 for one in plan.crossing}
        number = next(one.name for one in plan.crossing if one.is_number)
        tensor = next(one.name for one in plan.crossing if one.shape and not one.is_static)
        good: dict[str, Any] = {**sizes, **values}
        for name, value, error in (
            (number, "3", TypeError),
            (tensor, 3, TypeError),
            (tensor, torch.ones(2, 2, 2), ValueError),
            (tensor, values[tensor].to(torch.complex64), ValueError),
        ):
            with pytest.raises(error, match=name):
                end.send({**good, name: value})
    close(end)


@distributed(2, gloo_lacks=LACKS)
def test_a_tuple_does_not_cross() -> None:
    rank, _ = me()

    class Lists(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat(x.split(2)) + 1

    module = torch.fx.symbolic_trace(Lists())
    plan = remote.plan(module, "split", (torch.ones(4, 2),))
    with pytest.raises(
        NotImplementedError, match="not split .not a tensor, but of type tuple.*cut"
    ):
        plan.sender("lists", to=1 - rank)


def tensors(round: int, columns: int = 1000) -> dict[str, torch.Tensor]:
    return {
        "a": torch.full((3, columns), float(round)),
        "b": torch.tensor(round),
        "c": torch.arange(round, round + 5),
    }


def is_round(values: dict[str, torch.Tensor], round: int, columns: int = 1000) -> bool:
    expected = tensors(round, columns)
    return list(values) == list(expected) and all(
        torch.equal(values[name], expected[name]) for name in expected
    )


@distributed(2, gloo_lacks=LACKS)
def test_from_the_second_iteration_on_all_is_placed() -> None:
    rank, _ = me()
    trace = remote.trace()
    end = trace.sender("learnt", to=1) if rank == 0 else trace.receiver("learnt", of=0)
    for round in range(1, ROUNDS):
        dist.barrier()
        before = counters()
        if rank == 0:
            values = tensors(round)
            end.send(dict(reversed(values.items())) if round > 1 else values)
            for tensor in values.values():
                tensor.fill_(-1)
        else:
            assert is_round(end.receive(), round)
        dist.barrier()
        after = counters()
        assert end.stats["mailed"] == 3
        if round > 2:  # in the second the sender opens what was placed after the first
            for what in ("registrations", "control_messages"):
                assert after[what] == before[what], what
    if rank == 0:
        assert end.stats["writes"] == 1 + 3 * (ROUNDS - 2)
        place = {name: end.place(name) for name in tensors(1)}
        end.send({name: place[name].copy_(tensor) for name, tensor in tensors(ROUNDS).items()})
        assert end.stats["writes"] == 2 + 3 * (ROUNDS - 2)
    else:
        assert is_round(end.receive(), ROUNDS)
    close(end)


@distributed(2, gloo_lacks=LACKS)
def test_another_shape_goes_by_mailbox_while_it_lasts() -> None:
    rank, _ = me()
    trace = remote.trace()
    end = trace.sender("odd", to=1) if rank == 0 else trace.receiver("odd", of=0)
    mailed = 3
    for round in range(1, 3 * ROUNDS):
        columns = 1000 if round % 3 else 1000 + round
        mailed += columns != 1000
        if rank == 0:
            end.send(tensors(round, columns))
        else:
            assert is_round(end.receive(), round, columns)
        assert end.stats["mailed"] == mailed
    close(end)


@distributed(2, 3, gloo_lacks=LACKS)
def test_the_outputs_of_submodules() -> None:
    rank, world = me()
    module = Model()
    if rank == 0:
        trace = remote.trace(module, ["first", "last"])
        ends = [trace.sender(f"to {other}", to=other) for other in range(1, world)]
    else:
        ends = [remote.trace().receiver(f"to {rank}", of=0)]
    with torch.no_grad():
        for round in range(ROUNDS):
            x, scale = batch(round)
            expected = module(x, scale)
            if rank == 0:
                for end in ends:
                    end.send()
            else:
                values = ends[0].receive()
                assert list(values) == ["first", "last"]
                assert torch.equal(values["first"], module.first(x))
                assert torch.equal(values["last"] + values["first"].relu().sum(), expected)
    if rank == 0:
        with pytest.raises(ValueError, match=r"lacks \['first', 'last'\]|has nothing in it"):
            ends[0].send()
        module(x, scale)
        module(x, scale)
        with pytest.raises(ValueError, match="'first'.* ran more than once"):
            ends[0].send()
    close(*ends)
    hooks = [len(part._forward_hooks) for part in (module.first, module.last)]
    assert hooks == [0, 0]


@distributed(2, gloo_lacks=LACKS)
def test_a_stage_hands_on_what_it_received() -> None:
    """From its own slots, which are given back while what goes by mailbox may not be taken yet."""
    rank, _ = me()
    trace = remote.trace()
    if rank == 0:
        out, back = trace.sender("there", to=1), trace.receiver("back", of=1)
        out.send(tensors(1))
        for round in range(1, ROUNDS):
            out.send(tensors(round + 1))  # one ahead
            columns = 1000 if round % 2 else 500
            values = back.receive()
            assert is_round({**values, "a": values["a"][:, :500]}, round, 500)
            assert values["a"].shape == (3, columns)
    else:
        back, out = trace.receiver("there", of=0), trace.sender("back", to=0)
        for round in range(1, ROUNDS):
            values = back.receive()
            columns = 1000 if round % 2 else 500
            out.send({**values, "a": values["a"].view(-1)[: 3 * columns].view(3, columns)})
        assert is_round(back.receive(), ROUNDS)
    close(out, back)


@distributed(2, gloo_lacks=LACKS)
def test_wrong_values() -> None:
    rank, _ = me()
    trace = remote.trace()
    end = trace.sender("wrong", to=1) if rank == 0 else trace.receiver("wrong", of=0)
    if rank == 0:
        with pytest.raises(ValueError, match="has nothing in it"):
            end.send({})
        with pytest.raises(ValueError, match="trace.. was given no module"):
            end.send()
        with pytest.raises(TypeError, match=r"values\['a'\] is a float"):
            end.send({"a": 3.0})
        with pytest.raises(ValueError, match="name='a' has no place there; these have: ..$"):
            end.place("a")
        end.send(tensors(1))
        with pytest.raises(ValueError, match="lacks ..c"):
            end.send({name: tensors(2)[name] for name in "ab"})
        with pytest.raises(ValueError, match="has ..d.., which the first iteration had not"):
            end.send({**tensors(2), "d": torch.ones(1)})
        end.send(tensors(2))
    else:
        assert is_round(end.receive(), 1) and is_round(end.receive(), 2)
    close(end)


def test_wrong_arguments() -> None:
    module = Model()
    with pytest.raises(ValueError, match="cut='x' is no submodule; there are: first, middle, last"):
        remote.trace(module, "x")
    with pytest.raises(ValueError, match=r"module is a Model and cut=\[\]; give both, or none"):
        remote.trace(module)
    with pytest.raises(ValueError, match="module is a NoneType and cut=..first"):
        remote.trace(cut="first")


@distributed(2, 3, dies=(1,), gloo_lacks=LACKS)
def test_the_death_of_a_sender_that_is_traced() -> None:
    rank, _ = me()
    if rank == 0:
        end = remote.trace().receiver("mortal", of=1)
        with pytest.raises(remote.PeerError, match="rank 1"):
            for _ in range(5):
                end.receive()
    elif rank == 1:
        end = remote.trace().sender("mortal", to=0)
        end.send(tensors(1))
        os.kill(os.getpid(), signal.SIGKILL)
