"""What a plan has placed: two stages compute what one process does, and nothing but data moves."""

from __future__ import annotations

import os
import signal

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from test_remote import LACKS
from torch import nn

from rdmacoll import remote

ROUNDS = 7  # more than there are slots


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(6, 300)
        self.middle = nn.Linear(300, 20)
        self.last = nn.Linear(20, 4)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        wide = torch.relu(self.first(x))
        narrow = torch.tanh(self.middle(wide)) * scale
        return self.last(narrow) + wide.sum()


def batch(round: int, rows: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(round)
    return torch.randn(rows, 6, generator=generator), torch.randn(rows, 1, generator=generator)


def planned(cut: object = "relu") -> remote.Plan:
    return remote.plan(torch.export.export(Model(), batch(0)), cut)


def close(*ends: remote.Sender | remote.Receiver) -> None:
    """When all are done with theirs. The names are free again afterwards."""
    dist.barrier()
    for end in ends:
        end.close()
    dist.barrier()


def counters() -> dict[str, int]:
    return dist.group.WORLD._get_backend(torch.device("cpu"))._counters()


@distributed(2, gloo_lacks=LACKS)
def test_two_stages_compute_what_one_process_does() -> None:
    rank, _ = me()
    plan, whole = planned(), Model()
    with torch.no_grad():
        if rank == 0:
            end = plan.sender("two", to=1)
            for round in range(ROUNDS):
                x, scale = batch(round)
                values = plan.stage(0)(x=x, scale=scale)
                end.send(values)
                for tensor in values.values():
                    tensor.fill_(-1)  # which is the caller's again
        else:
            end = plan.receiver("two", of=0)
            for round in range(ROUNDS):
                result = plan.stage(1)(**end.receive())
                assert torch.equal(result["add"], whole(*batch(round)))
    assert end.stats["iterations"] == ROUNDS
    close(end)


@distributed(3, gloo_lacks=LACKS)
def test_a_value_that_two_stages_use() -> None:
    rank, _ = me()
    plan, whole = planned(["relu", "tanh"]), Model()
    assert plan.pairs == [(0, 1), (0, 2), (1, 2)]
    ins = [(made, used) for made, used in plan.pairs if used == rank]
    outs = [(made, used) for made, used in plan.pairs if made == rank]
    receivers = [plan.receiver(f"{pair}", of=pair[0], stages=pair) for pair in ins]
    senders = [plan.sender(f"{pair}", to=pair[1], stages=pair) for pair in outs]
    stage = plan.stage(rank)
    with torch.no_grad():
        for round in range(ROUNDS):
            x, scale = batch(round)
            values = {"x": x, "scale": scale} if rank == 0 else {}
            for receiver in receivers:
                values.update(receiver.receive())
            results = stage(**values)
            for sender in senders:
                sender.send(results)
            if rank == 2:
                assert torch.equal(results["add"], whole(x, scale))
    close(*receivers, *senders)


@pytest.mark.parametrize("in_place", [False, True])
@distributed(2, gloo_lacks=LACKS)
def test_nothing_but_the_data_moves_from_the_first_iteration_on(in_place: bool) -> None:
    rank, _ = me()
    plan = planned("tanh")
    names = [one.name for one in plan.crossing]
    assert len(names) == 3
    end = plan.sender("still", to=1) if rank == 0 else plan.receiver("still", of=0)
    values = {one.name: torch.ones(one.shape) for one in plan.crossing}
    if rank == 0 and in_place:
        values = {name: end.place(name).fill_(1) for name in names}
    dist.barrier()
    before = counters()
    if rank == 0:
        end.send(values)
        writes = 1 if in_place else 3
        assert end.stats == {"iterations": 1, "writes": writes, "mailed": 0, "copies": 0}
    else:
        views = end.receive()
        assert all((views[name] == 1).all() for name in names)
    after = counters()
    for what in ("registrations", "control_messages"):
        assert after[what] == before[what], what
    close(end)


@distributed(2, gloo_lacks=LACKS)
def test_the_sender_is_two_iterations_ahead_and_no_more() -> None:
    rank, _ = me()
    plan = planned()
    values = {one.name: torch.zeros(one.shape) for one in plan.crossing}
    if rank == 0:
        end = plan.sender("ahead", to=1)
        for round in (1, 2):
            end.send({name: tensor.fill_(round) for name, tensor in values.items()})
        third = {name: tensor.fill_(3) for name, tensor in values.items()}
        with pytest.raises(TimeoutError, match="iteration 1 of 'ahead' was not given back"):
            end.send(third, timeout=0.1)
        dist.barrier()
        end.send(third)
    else:
        end = plan.receiver("ahead", of=0)
        dist.barrier()
        first = end.receive()
        assert all((tensor == 1).all() for tensor in first.values())
        for round in (2, 3):
            assert all((tensor == round).all() for tensor in end.receive().values())
        with pytest.raises(TimeoutError, match="iteration 4 of 'ahead' has not come"):
            end.receive(timeout=0.1)
    close(end)


@distributed(2, gloo_lacks=LACKS)
def test_tensors_that_are_not_contiguous_are_copied_and_counted() -> None:
    rank, _ = me()
    program = torch.export.export(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), (torch.zeros(2, 3),))
    plan = remote.plan(program, "0")
    value = torch.arange(8.0, requires_grad=True).view(4, 2)
    if rank == 0:
        end = plan.sender("odd", to=1)
        end.send({"linear": value.t()})
        assert end.stats["copies"] == 1 and not end.place("linear").requires_grad
        end.send({"linear": value.t().contiguous()})
        assert end.stats["copies"] == 1
    else:
        end = plan.receiver("odd", of=0)
        for _ in range(2):
            assert torch.equal(end.receive()["linear"], value.t())
    close(end)


@distributed(2, gloo_lacks=LACKS)
def test_wrong_values() -> None:
    rank, _ = me()
    plan = planned()
    if rank == 0:
        end = plan.sender("wrong", to=1)
        relu, scale = torch.ones(5, 300), torch.ones(5, 1)
        wrong = [
            (ValueError, "lacks .'scale'.", {"relu": relu}),
            (ValueError, r"values\['relu'\] has shape \(4, 300\)", {"relu": relu[:4]}),
            (ValueError, "dtype torch.float64", {"relu": relu.double()}),
            (ValueError, "strided", {"relu": relu.to_sparse()}),
            (TypeError, "is a int; give a tensor", {"relu": 3}),
        ]
        for error, match, values in wrong:
            with pytest.raises(error, match=match):
                end.send({"scale": scale, **values} if "lacks" not in match else values)
        with pytest.raises(ValueError, match="timeout=-1"):
            end.send({"relu": relu, "scale": scale}, timeout=-1)
        with pytest.raises(ValueError, match="name='x' has no place there; these have: ..scale"):
            end.place("x")
        with pytest.raises(ValueError, match="exposed already"):
            plan.sender("wrong", to=1)
        end.send({"relu": relu, "scale": scale, "another": relu})
    else:
        end = plan.receiver("wrong", of=0)
        assert set(end.receive()) == {"relu", "scale"}
    close(end)


@distributed(2, gloo_lacks=LACKS)
def test_both_sides_have_the_same_plan() -> None:
    rank, _ = me()
    if rank == 0:
        with pytest.raises(ValueError, match="receiver has made place for other tensors"):
            planned("relu").sender("unlike", to=1)
    else:
        with pytest.raises(TimeoutError):
            planned("middle").receiver("alone", of=0, timeout=0.1)
        end = planned("middle").receiver("unlike", of=0)
        with pytest.raises(remote.RevokedError):
            end.receive()
        end.close()
    dist.barrier()
    assert remote.stats()["exposures"] == 0


@distributed(2, gloo_lacks=LACKS)
def test_what_was_sent_before_the_end_is_received() -> None:
    rank, _ = me()
    plan = planned()
    values = {one.name: torch.ones(one.shape) for one in plan.crossing}
    if rank == 0:
        end = plan.sender("ended", to=1)
        end.send(values)
        end.send(values)
        end.close()
        with pytest.raises(RuntimeError, match="it is closed"):
            end.send(values)
        dist.barrier()
    else:
        end = plan.receiver("ended", of=0)
        dist.barrier()
        end.receive()
        with pytest.raises(remote.RevokedError):
            while True:
                end.receive()
        end.close()
    dist.barrier()


@distributed(2, 3, dies=(1,), gloo_lacks=LACKS)
def test_the_death_of_the_receiver() -> None:
    rank, _ = me()
    plan = planned()
    values = {one.name: torch.ones(one.shape) for one in plan.crossing}
    if rank == 0:
        end = plan.sender("mortal", to=1)
        with pytest.raises(remote.PeerError, match="rank 1"):
            for _ in range(5):
                end.send(values)
        with pytest.raises(remote.PeerError):
            end.send(values)
    elif rank == 1:
        end = plan.receiver("mortal", of=0)
        end.receive()
        os.kill(os.getpid(), signal.SIGKILL)


@distributed(2, 3, dies=(1,), gloo_lacks=LACKS)
def test_the_death_of_the_sender() -> None:
    rank, _ = me()
    plan = planned()
    values = {one.name: torch.ones(one.shape) for one in plan.crossing}
    if rank == 0:
        end = plan.receiver("mortal", of=1)
        with pytest.raises(remote.PeerError, match="rank 1"):
            for _ in range(5):
                end.receive()
    elif rank == 1:
        plan.sender("mortal", to=0).send(values)
        os.kill(os.getpid(), signal.SIGKILL)
