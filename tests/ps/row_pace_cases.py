"""ps.Embedding and ps.EmbeddingBag whose workers wait for each other, in jobs of any size.

Gradients are integers and the rate is 1 where sums are compared.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import hashlib
import random
import time
from pathlib import Path
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


def in_a_hurry(module: ps.Embedding) -> ps.Embedding:
    """From now on: who makes it waits for others, too."""
    module._kv._timeout = SHORT_S
    return module


def everyones_row() -> torch.Tensor:
    return torch.arange(dist.get_world_size())


def push_own_row(module: ps.Embedding, value: float = 1.0) -> torch.Tensor:
    """A step of this worker on the row of its rank; what it has seen of all rows."""
    out = module(everyones_row())
    (out[dist.get_rank()].sum() * value).backward()
    seen: torch.Tensor = out.detach()
    return seen


def rows_of(module: ps.Embedding | ps.EmbeddingBag, ids: torch.Tensor) -> torch.Tensor:
    return module._kv.row_pull(module._name, ids)


def scale(pace: Any) -> int:
    """What a gradient that one worker alone has is 1 by: Sync takes the mean."""
    return dist.get_world_size() if isinstance(pace, ps.Sync) else 1


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
    module = in_a_hurry(made("stale late", ps.Stale(apart)))
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
    assert module._kv._steps_of("stale late/steps", world) == [apart + 1] * world


# --- Sync ---------------------------------------------------------------------------------------

RULES = (
    ps.SGD(lr=0.5, momentum=0.9),
    ps.RowwiseAdagrad(lr=0.1, lr_decay=0.1),
    ps.Adam(lr=0.1),
)
ROWS, DIM = 200, 5


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Some rows, now and then none, and a gradient for each. All know those of all."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    count = int(torch.randint(0, 60, (1,), generator=generator)) * ((step + rank) % 4 > 0)
    ids = torch.randperm(ROWS, generator=generator)[:count] * 3 - ROWS
    return ids, torch.randn(count, DIM, generator=generator)


def means(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A row at a time, in the order of ranks."""
    world = dist.get_world_size()
    sums: dict[int, torch.Tensor] = {}
    for rank in range(world):
        for id, gradient in zip(*batch(step, rank), strict=True):
            sums[int(id)] = sums[int(id)] + gradient if int(id) in sums else gradient
    rows = [total / world for total in sums.values()]
    return torch.tensor(list(sums), dtype=torch.int64), torch.cat(
        [torch.empty(0, DIM), *[row[None] for row in rows]]
    )


def case_sync_has_the_bits_of_one_process(kv: ps.KV) -> None:
    """That steps once for each row, with the mean of the workers' gradients; whoever is late."""
    rank, jitter = dist.get_rank(), random.Random(dist.get_rank())
    every_id = torch.arange(ROWS) * 3 - ROWS
    bits = hashlib.sha256()
    for number, rule in enumerate(RULES):
        options: Any = {"dim": DIM, "optimizer": rule, "initial": ps.Normal(seed=4)}
        module = made(f"sync {number}", ps.Sync(), **options)
        alone = f"alone {number} of {rank}"
        kv.init_rows(alone, **options)
        for step in range(STEPS):
            time.sleep(jitter.random() * 0.01)
            ids, gradients = batch(step, rank)
            out = module(ids)
            assert torch.equal(out, kv.row_pull(alone, ids))
            (out * gradients).sum().backward()
            kv.row_push(alone, *means(step))
        module.wait()
        found = rows_of(module, every_id)
        assert torch.equal(found, kv.row_pull(alone, every_id)), rule
        bits.update(found.numpy().tobytes())
    Path(f"bits.{rank}").write_text(bits.hexdigest())


def case_sync_trains_as_one_process_with_the_whole_batch(_kv: ps.KV) -> None:
    world, rank = dist.get_world_size(), dist.get_rank()
    options: Any = {"optimizer": ps.SGD(lr=0.5), "initial": ps.Normal(seed=5)}
    ours = ps.EmbeddingBag("whole", DIM, ROWS, "mean", pace=ps.Sync(), **options)
    theirs = torch.nn.EmbeddingBag(ROWS, DIM, mode="mean")
    with torch.no_grad():
        theirs.weight.copy_(rows_of(ours, torch.arange(ROWS)))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.5)
    generator = torch.Generator().manual_seed(6)
    for _ in range(STEPS):
        ids = torch.randint(ROWS, (4 * world, 7), generator=generator)
        ours(ids[4 * rank : 4 * rank + 4]).square().sum().backward()
        optimizer.zero_grad()
        (theirs(ids).square().sum() / world).backward()
        optimizer.step()
    ours.wait()
    torch.testing.assert_close(rows_of(ours, torch.arange(ROWS)), theirs.weight.detach())


def case_sync_names_who_is_late(_kv: ps.KV) -> None:
    world, rank = dist.get_world_size(), dist.get_rank()
    module = in_a_hurry(made("sync late", ps.Sync()))
    last = world - 1
    push_own_row(module, world)
    if rank != last:
        words = rf"step 1 of 'sync late' needs 1 steps of every rank; .*: rank {last} has made 0$"
        for call in module.wait, lambda: module(everyones_row()), module.wait:
            with pytest.raises(TimeoutError, match=words):
                call()
    dist.barrier()
    for _ in range(2):
        until_done(module.wait)
        push_own_row_at_last(module, world)
    until_done(module.wait)
    assert rows_of(module, everyones_row()).unique().tolist() == [-3.0]


def push_own_row_at_last(module: ps.Embedding, value: float) -> None:
    until_done(lambda: push_own_row(module, value))


# --- both ---------------------------------------------------------------------------------------


def steps_of(module: ps.Embedding) -> int:
    return module._kv._steps_of(f"{module._name}/steps", dist.get_world_size())[dist.get_rank()]


def check_what_a_step_is(pace: Any) -> None:
    name = f"a step of {pace}"
    module = made(name, pace)
    own, one = everyones_row()[dist.get_rank() :][:1], scale(pace)
    assert steps_of(module) == 0
    module(own)  # no backward comes
    with torch.no_grad():
        module(own)
    module.wait()
    assert steps_of(module) == 0
    (one * module(own).sum() + 10 * one * module(own).sum()).backward()
    with torch.no_grad():
        assert module(own).unique().tolist() == [-11.0]
    assert steps_of(module) == 1
    for _ in range(2):  # as is another backward before the next forward
        loss = one * module(own).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    module.wait()
    module.wait()
    assert steps_of(module) == 3
    module(torch.empty(0, dtype=torch.int64)).sum().backward()
    module.wait()
    assert steps_of(module) == 4
    module.skip()
    assert steps_of(module) == 4
    module.skip()  # ends the one before
    assert steps_of(module) == 5
    module.wait()
    assert steps_of(module) == 6
    dist.barrier()
    assert rows_of(module, everyones_row()).unique().tolist() == [-15.0]


def case_what_a_step_is(_kv: ps.KV) -> None:
    for pace in ps.Stale(1), ps.Sync():
        check_what_a_step_is(pace)


def check_out_of_batches(pace: Any) -> None:
    """Each worker has another number of batches."""
    world, rank = dist.get_world_size(), dist.get_rank()
    module = made(f"uneven {pace}", pace)
    for step in range(2 * world):
        if step < 2 * (rank + 1):
            push_own_row(module, scale(pace))
        else:
            module.skip()
    module.wait()
    dist.barrier()
    wanted = [-2.0 * (other + 1) for other in range(world)]
    assert rows_of(module, everyones_row())[:, 0].tolist() == wanted


def case_a_worker_without_batches(_kv: ps.KV) -> None:
    for pace in ps.Stale(1), ps.Sync():
        check_out_of_batches(pace)


def case_one_pace_for_all(_kv: ps.KV) -> None:
    given: Any = ps.Embedding
    bag: Any = ps.EmbeddingBag
    refused(
        (TypeError, "pace is Sync; give ps.Async", lambda: given("no pace", 2, pace=ps.Sync)),
        (TypeError, "pace is str", lambda: bag("no pace", 2, pace="sync")),
    )
    if dist.get_rank() == 0:
        made("one pace", ps.Stale(1))
        made("no pace", ps.Async())
    dist.barrier()
    if dist.get_rank() == dist.get_world_size() - 1:
        words = r"has said Stale\(steps=1\); give all the same one"
        for pace in ps.Async(), ps.Stale(2), ps.Sync():
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
