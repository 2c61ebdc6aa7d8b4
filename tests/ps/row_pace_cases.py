"""ps.Embedding and ps.EmbeddingBag whose workers wait for each other, in jobs of any size.

Gradients are integers and the rate is 1 where sums are compared.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from training_cases import refused

from rdmacoll import ps

STEPS = 12
SHORT_S = 0.5  # a timeout that is to pass
LIMIT_S = 20.0
SGD = ps.SGD(lr=1.0)


def made(name: str, pace: Any, dim: int = 2, timeout: float = LIMIT_S, **more: Any) -> ps.Embedding:
    options: Any = {"optimizer": SGD, **more}
    return ps.Embedding(name, dim, pace=pace, timeout=timeout, **options)


def everyones_row() -> torch.Tensor:
    return torch.arange(dist.get_world_size())


def push_own_row(module: ps.Embedding, value: float = 1.0) -> torch.Tensor:
    """A step of this worker on the row of its rank; what it has seen of all rows."""
    out = module(everyones_row())
    (out[dist.get_rank()].sum() * value).backward()
    seen: torch.Tensor = out.detach()
    return seen


def rows_of(module: ps.Embedding, ids: torch.Tensor) -> torch.Tensor:
    return module._kv.row_pull(module._name, ids)


def until_done(call: Any) -> None:
    """Where others may come late."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            return call()
        except TimeoutError:
            assert time.monotonic() < deadline


def case_stale_sees_all_but_the_last_steps(_kv: ps.KV) -> None:
    jitter = random.Random(dist.get_rank())
    for apart in 0, 2:
        module = made(f"stale {apart}", ps.Stale(apart))
        for step in range(STEPS):
            time.sleep(jitter.random() * 0.01)
            steps = -push_own_row(module)[:, 0]
            # Of others a push of the step that they are in may be there already.
            assert torch.all(steps >= step - apart) and torch.all(steps <= step + apart + 1)
            assert steps[dist.get_rank()] == step
        module.wait()
        dist.barrier()
        assert rows_of(module, everyones_row()).unique().tolist() == [-STEPS]


def case_stale_names_who_is_late(_kv: ps.KV) -> None:
    """The last worker makes no step at first: the others come so far, and nothing is lost."""
    world, rank, apart = dist.get_world_size(), dist.get_rank(), 2
    module = made("stale late", ps.Stale(apart), timeout=SHORT_S)
    last = world - 1
    if rank != last:
        for _ in range(apart + 1):
            until_done(lambda: push_own_row(module))
        words = rf"step {apart + 1} of 'stale late' needs 1 steps .*: rank {last} has made 0$"
        for call in module.wait, lambda: module(everyones_row()), module.wait:
            with pytest.raises(TimeoutError, match=words):
                call()
    dist.barrier()
    if rank == last:
        for _ in range(apart + 1):
            until_done(lambda: push_own_row(module))
    until_done(module.wait)
    dist.barrier()
    assert rows_of(module, everyones_row()).unique().tolist() == [-(apart + 1.0)]
    assert module._kv._steps_of("stale late/steps") == [apart + 1] * world


def steps_of(module: ps.Embedding) -> int:
    return module._kv._steps_of(f"{module._name}/steps")[dist.get_rank()]


def check_what_a_step_is(pace: Any) -> None:
    name = f"a step of {pace}"
    module = made(name, pace)
    own = everyones_row()[dist.get_rank() :][:1]
    assert steps_of(module) == 0
    module(own)  # no backward comes
    with torch.no_grad():
        module(own)
    module.wait()
    assert steps_of(module) == 0
    (module(own).sum() + 10 * module(own).sum()).backward()  # twice in a model is one step
    with torch.no_grad():
        assert module(own).unique().tolist() == [-11.0]
    assert steps_of(module) == 1
    for _ in range(2):  # as is another backward before the next forward
        out = module(own)
        out.sum().backward(retain_graph=True)
        out.sum().backward()
    module.wait()
    module.wait()
    assert steps_of(module) == 3
    module(torch.empty(0, dtype=torch.int64)).sum().backward()
    module.wait()
    assert steps_of(module) == 4
    module.step()
    assert steps_of(module) == 5
    dist.barrier()
    assert rows_of(module, everyones_row()).unique().tolist() == [-15.0]


def case_what_a_step_is(_kv: ps.KV) -> None:
    for pace in (ps.Stale(1),):
        check_what_a_step_is(pace)


def check_out_of_batches(pace: Any) -> None:
    """Each worker has another number of batches."""
    world, rank = dist.get_world_size(), dist.get_rank()
    module = made(f"uneven {pace}", pace)
    for step in range(2 * world):
        if step < 2 * (rank + 1):
            push_own_row(module)
        else:
            module.step()
    module.wait()
    dist.barrier()
    wanted = [-2.0 * (other + 1) for other in range(world)]
    assert rows_of(module, everyones_row())[:, 0].tolist() == wanted


def case_a_worker_without_batches(_kv: ps.KV) -> None:
    for pace in (ps.Stale(1),):
        check_out_of_batches(pace)


def case_one_pace_for_all(_kv: ps.KV) -> None:
    given: Any = ps.Embedding
    bag: Any = ps.EmbeddingBag
    refused(
        (TypeError, "pace is Sync; give ps.Async", lambda: given("no pace", 2, pace=ps.Sync)),
        (TypeError, "pace is str", lambda: bag("no pace", 2, pace="sync")),
    )
    world = dist.get_world_size()
    if dist.get_rank() == 0:
        made("one pace", ps.Stale(1))
        made("no pace", ps.Async())
    dist.barrier()
    if dist.get_rank() == world - 1:
        words = rf"has said Stale\(steps=1\) of {world} workers"
        for pace in ps.Async(), ps.Stale(2):
            with pytest.raises(ValueError, match=words):
                made("one pace", pace)
        with pytest.raises(ValueError, match=r"has said Async\(\)"):
            made("no pace", ps.Stale(1))
    assert "pace=Stale(steps=1)" in repr(made("one pace", ps.Stale(1)))


def case_snapshots_have_no_clock(_kv: ps.KV) -> None:
    module = made("saved", ps.Stale(1))
    push_own_row(module)
    module.wait()
    ps.snapshot("paced", tables=["saved"])
    push_own_row(module)
    module.wait()
    dist.barrier()
    assert not [name for name in module._kv._worker.tables if "/steps" in name]
    ps.restore("paced", tables=["saved"])
    push_own_row(module)
    module.wait()
    dist.barrier()
    assert rows_of(module, everyones_row()).unique().tolist() == [-2.0]
