"""hvd.elastic's states and sampler, of ranks that none of which is lost. Floor: tests."""

from __future__ import annotations

from typing import Any

import torch
from named_operation_cases import raises

import rdmacoll.horovod as hvd
from rdmacoll.horovod import elastic


def weights(model: torch.nn.Module) -> list[float]:
    return [p.detach().flatten()[0].item() for p in model.parameters()]


def filled(value: float) -> torch.nn.Linear:
    model = torch.nn.Linear(3, 2)
    for p in model.parameters():
        torch.nn.init.constant_(p, value)
    return model


def case_sync_takes_what_rank_0_has() -> None:
    model = filled(float(hvd.rank()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + hvd.rank()), momentum=0.9)
    state = elastic.TorchState(model, optimizer, epoch=10 + hvd.rank(), log=[hvd.rank()])
    state.sync()
    assert weights(model) == [0.0, 0.0] and state.model is model
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert (state.epoch, state.log) == (10, [0])
    state.epoch = 12
    state.restore()  # what was synchronized is saved
    assert state.epoch == 10


def case_restore_is_the_last_commit() -> None:
    model = filled(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    state = elastic.TorchState(model=model, optimizer=optimizer, batch=0, log=[])
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state.batch = 1
    state.log.append("one")
    committed = weights(model)
    state.commit()
    optimizer.step()
    state.batch = 2
    state.log.append("two")
    assert weights(model) != committed
    for _ in range(2):  # a copy is taken each time: what comes after does not change it
        state.restore()
        assert (weights(model), state.batch, state.log) == (committed, 1, ["one"])
        buffers = [optimizer.state[p]["momentum_buffer"] for p in model.parameters()]
        assert [b.flatten()[0].item() for b in buffers] == [1.0, 1.0]  # the gradients
        optimizer.step()
        state.log.append("three")


def case_a_value_takes_anothers_place() -> None:
    state = elastic.TorchState(filled(1.0))
    state.model = filled(2.0)
    torch.nn.init.constant_(state.model.weight, 5.0)
    state.restore()
    assert weights(state.model) == [2.0, 2.0]


class Counter:
    def __init__(self, number: int) -> None:
        self.number = number


class CounterHandler(elastic.StateHandler):
    def save(self) -> None:
        self.saved = self.value.number

    def restore(self) -> None:
        self.value.number = self.saved

    def sync(self) -> None:
        self.value.number = hvd.broadcast_object(self.value.number)


def case_handlers_of_ones_own() -> None:
    before = elastic.get_handler_registry()
    elastic.set_handler_registry([(Counter, CounterHandler), *before])
    try:
        counter = Counter(7 + hvd.rank())
        state = elastic.TorchState(counter=counter)
        state.sync()
        assert counter.number == 7
        state.commit()
        counter.number = 100
        state.restore()
        assert counter.number == 7
    finally:
        elastic.set_handler_registry(before)


def everyones(sampler: Any) -> list[int]:
    return sorted(hvd.allgather(torch.tensor(list(sampler), dtype=torch.int64)).tolist())


def case_the_sampler_shares_out_what_is_left() -> None:
    ranks = hvd.size()
    dataset = list(range(12 * ranks))
    sampler = elastic.ElasticSampler(dataset, seed=3)
    assert len(sampler) == 12 and everyones(sampler) == dataset
    first = list(sampler)[:8]
    state = elastic.TorchState(sampler=sampler)
    sampler.record_batch(0, 4)
    sampler.record_batch(1, 4)
    state.commit()
    sampler.record_batch(2, 4)
    state.restore()
    state.sync()
    assert sampler.processed_num == 8 * ranks and len(sampler) == 4
    gone = hvd.allgather(torch.tensor(first)).tolist()
    assert sorted(gone + everyones(sampler)) == dataset, "each sample once"
    sampler.set_epoch(1)
    assert len(sampler) == 12 and everyones(sampler) == dataset
    plain = elastic.ElasticSampler(dataset, shuffle=False)
    assert list(plain) == dataset[hvd.rank() :: ranks]


def case_the_sampler_gives_all_ranks_equally_many() -> None:
    sampler = elastic.ElasticSampler(range(1), shuffle=False)
    assert list(sampler) == [0] and len(sampler) == 1
    sampler.record_batch(0, 1)
    state = sampler.state_dict()
    sampler.load_state_dict(state)
    assert list(sampler) == [] and len(sampler) == 0


def case_a_state_of_ones_own_and_callbacks() -> None:
    state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=1)
    said: list[str] = []
    state.register_reset_callbacks([lambda: said.append("first"), lambda: said.append("then")])
    state.on_reset()
    assert said == ["first", "then"]
    plain = elastic.State(hvd.broadcast_object, hvd.rank)
    raises(NotImplementedError, plain.commit, "")


def case_run_returns_what_the_function_does() -> None:
    state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=hvd.rank())

    @elastic.run
    def train(state: Any, more: int, *, last: int) -> tuple[int, int, int]:
        """Trains."""
        state.commit()
        return state.step, more, last

    assert train(state, 1, last=2) == (0, 1, 2)
    assert train.__doc__ == "Trains."


def case_run_raises_what_is_a_mistake() -> None:
    state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, tries=0)

    @elastic.run
    def train(state: Any) -> None:
        state.tries += 1
        hvd.allreduce(torch.ones(1 + hvd.rank()), name="differs")

    if hvd.size() > 1:
        raises(hvd.HorovodInternalError, lambda: train(state), "Mismatched")
        assert state.tries == 1
    assert hvd.allreduce(torch.ones(1), name="then", op=hvd.Sum).item() == hvd.size()


def case_run_begins_anew_where_a_script_says_so() -> None:
    """One rank alone raises it, as if it had lost another; nobody is lost."""
    model = filled(1.0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
    )
    state = elastic.TorchState(model, optimizer, step=0, tries=0)
    sizes: list[int] = []
    state.register_reset_callbacks([lambda: sizes.append(hvd.size())])

    @elastic.run
    def train(state: Any) -> None:
        for step in range(state.step, 6):
            state.step = step
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
            if state.step == 3 and hvd.rank() == hvd.size() - 1 and not sizes:
                raise hvd.HorovodInternalError("as if one were lost")
            optimizer.step()
            state.commit()

    if hvd.size() > 1:
        train(state)
        assert sizes == [hvd.size()]
        # The step that was committed last is made again: it is the script's to count.
        assert abs(weights(model)[0] - (1.0 - 0.1 * 7)) < 1e-5, weights(model)


def case_the_first_rank_begins_anew_while_the_others_commit() -> None:
    """They wait in the commit for what it never says."""
    state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0)
    sizes: list[int] = []
    state.register_reset_callbacks([lambda: sizes.append(hvd.size())])

    @elastic.run
    def train(state: Any) -> None:
        while state.step < 3:
            state.step += 1
            if state.step == 2 and hvd.rank() == 0 and not sizes:
                raise hvd.HorovodInternalError("as if one were lost")
            state.commit()

    if hvd.size() > 1:
        train(state)
        assert sizes == [hvd.size()] and state.step == 3
