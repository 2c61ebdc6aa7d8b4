"""elastic.State, what it exchanges, and what run() refuses; with no rank that comes back."""

from __future__ import annotations

import datetime
import os
import signal

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from scripts import run_ranks
from torch import nn

from rdmacoll import elastic
from rdmacoll.elastic.exchange import from_rank

OURS = "has no way to a smaller group"
SECOND = datetime.timedelta(seconds=1)


def mixed() -> dict[str, object]:
    """What a state may hold, of this rank's own values."""
    torch.manual_seed(dist.get_rank())
    wide = torch.randn(4, 6)
    return {
        "floats": torch.randn(1000),
        "transposed": wide.t(),
        "part": wide[:, 1:3],
        "bfloat16": torch.randn(7).bfloat16(),
        "complex": torch.randn(3, dtype=torch.complex64),
        "conjugate": torch.randn(3, dtype=torch.complex64).conj(),
        "bools": torch.rand(9) > 0.5,
        "number": torch.tensor(dist.get_rank()),
        "none": torch.empty(0, 3),
        "nan": torch.tensor([float("nan"), -0.0]),
        "sparse": torch.eye(3).to_sparse() * dist.get_rank(),
        "parameter": nn.Parameter(torch.randn(2)),
        "plain": [dist.get_rank(), {"name": ("a", 1.5, None)}],
    }


def bits(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    dense = value.detach().to_dense() if value.is_sparse else value.detach()
    exact = dense.resolve_conj().contiguous().reshape(-1).view(torch.uint8).tolist()
    return type(value), value.dtype, tuple(value.shape), value.requires_grad, exact


@distributed(1, 2, 3)
def test_a_value_of_one_rank_to_all() -> None:
    rank, size = me()
    for source in range(size):
        mine = mixed()
        got = from_rank(source, mine)
        assert (got is mine) == (rank == source)
        everyones: list[object] = [None] * size
        dist.all_gather_object(everyones, {name: bits(value) for name, value in got.items()})
        assert everyones == [everyones[source]] * size
        assert everyones[source]["plain"][0] == source


@distributed(3)
def test_the_furthest_commit_counts() -> None:
    rank, _ = me()
    torch.manual_seed(rank)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.9)
    state = elastic.State(net=net, optimizer=optimizer, step=0)
    state._begin(is_joiner=rank == 0, at_commit=lambda: None)

    def advance() -> None:
        optimizer.zero_grad()
        net(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        state.step += 1

    for _ in range((0, 2, 1)[rank]):
        advance()
        state.commit()
    committed = [weights.detach().clone() for weights in net.parameters()]
    advance()  # uncommitted, and so it is undone
    state._sync()
    assert state.step == 2
    for mine, theirs in zip(net.parameters(), committed, strict=True):
        dist.broadcast(theirs, 1)
        assert torch.equal(mine, theirs)
    advance()  # with the momentum that came along
    for weights in net.parameters():
        everyones = [torch.empty_like(weights) for _ in range(3)]
        dist.all_gather(everyones, weights.detach())
        assert torch.equal(everyones[0], everyones[1])
        assert torch.equal(everyones[0], everyones[2])
    state._sync()  # what was loaded is still as it was committed
    assert state.step == 2
    for mine, theirs in zip(net.parameters(), committed, strict=True):
        assert torch.equal(mine, theirs)


@distributed(2)
def test_joiners_alone_hold_no_state() -> None:
    state = elastic.State(step=0)
    state._begin(is_joiner=True, at_commit=lambda: None)
    with pytest.raises(RuntimeError, match="nobody of the group holds the state"):
        state._sync()


@distributed(3, dies=(0,), fresh=True, init=False, gloo_lacks=OURS)
def test_a_loss_where_nobody_is_started_again() -> None:
    """As under rdmarun --min-np or torchrun; the lowest rank is the one that is lost."""
    state = elastic.State(total=torch.zeros(1000), step=0)

    def train(state: elastic.State) -> str:
        rank, size = dist.get_rank(), dist.get_world_size()
        while state.step < 20:
            if state.step == 7 and os.environ["RANK"] == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            state.total += 1  # undone if the step fails
            parts = torch.full((1000,), float(sum(range(rank, 12, size))))
            dist.all_reduce(parts)
            state.total += parts
            state.step += 1
            if state.step % 3 == 0:
                state.commit()
        return f"{size} ranks"

    assert elastic.run(train, state) == "2 ranks"
    assert torch.equal(state.total, torch.full((1000,), 20 * (1 + sum(range(12)) * 1.0)))
    dist.barrier()
    dist.destroy_process_group()


@distributed(2, fresh=True, init=False, gloo_lacks=OURS)
def test_errors_of_train_are_the_users() -> None:

    def fail(state: elastic.State) -> None:
        raise RuntimeError("of the user")

    with pytest.raises(RuntimeError, match="of the user"):
        elastic.run(fail, elastic.State(step=0))
    dist.destroy_process_group()


@distributed(2)
def test_a_group_that_is_there_is_in_the_way() -> None:
    with pytest.raises(RuntimeError, match="leave that call out"):
        elastic.run(lambda state: None, elastic.State(step=0))


def test_names_of_the_state() -> None:
    for name in ("commit", "_copy"):
        with pytest.raises(ValueError, match=rf"State\({name}=\.\.\.\): the name is taken"):
            elastic.State(**{name: 1})
    state = elastic.State(step=0)
    state.step = 1
    with pytest.raises(AttributeError, match=r"state.epoch is no part .* State\(epoch=\.\.\.\)"):
        state.epoch = 1


def test_times() -> None:
    def run(**times: datetime.timedelta) -> None:
        elastic.run(lambda state: None, elastic.State(step=0), **times)

    for name in ("timeout", "join_timeout", "admit_timeout"):
        with pytest.raises(ValueError, match=f"{name}=0 s: give a time above 0"):
            run(**{name: 0 * SECOND})
    with pytest.raises(ValueError, match="timeout=30 s is not above admit_timeout=30 s"):
        run(timeout=30 * SECOND)


def test_a_process_that_inherits_the_variable_of_a_joiner_is_none() -> None:
    text = "import torch.distributed as dist; dist.init_process_group('rdma'); dist.barrier()"
    (finished,) = run_ranks("import os; os.environ['RDMACOLL_ELASTIC'] = 'joins'; " + text, 1)
    assert finished.code == 0, finished.output
