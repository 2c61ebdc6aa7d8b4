"""Operations by name, against what one rank can compute by itself. Floor: tests."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

import torch

import rdmacoll.horovod as hvd
import rdmacoll.horovod.byteps as bps
from rdmacoll.horovod.names import world

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64, torch.uint8)


def of_rank(rank: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small integers, so that sums are exact in every dtype and order."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(0, 5, shape, generator=generator).to(dtype)


def everyones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.stack([of_rank(rank, *shape, dtype=dtype) for rank in range(hvd.size())])


def raises(kind: type[Exception], what: Callable[[], object], words: str) -> None:
    try:
        what()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}: {words}")


def case_ranks_and_sizes() -> None:
    assert hvd.is_initialized()
    assert 0 <= hvd.rank() < hvd.size()
    assert (hvd.local_rank(), hvd.local_size()) == (hvd.rank(), hvd.size())
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    hvd.init()  # does nothing
    hvd.shutdown()
    assert not hvd.is_initialized()
    raises(ValueError, hvd.rank, "use hvd.init()")
    raises(ValueError, lambda: hvd.allreduce(torch.ones(1)), "use hvd.init()")
    hvd.init()
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


def case_what_it_was_built_with() -> None:
    assert hvd.gloo_built() and hvd.gloo_enabled()
    assert not (hvd.mpi_built() or hvd.mpi_enabled() or hvd.mpi_threads_supported())
    assert hvd.nccl_built() == 0
    assert not (hvd.cuda_built() or hvd.rocm_built() or hvd.ccl_built() or hvd.ddl_built())


def case_allreduce() -> None:
    for dtype in DTYPES:
        all_of = everyones(3, 5, dtype=dtype)
        own = all_of[hvd.rank()]
        wide = all_of.double()
        expected = {
            hvd.Sum: wide.sum(0),
            hvd.Min: wide.amin(0),
            hvd.Max: wide.amax(0),
            hvd.Product: wide.prod(0) if hvd.size() < 4 else None,
        }
        for op, values in expected.items():
            if values is not None and values.max() <= 255:
                assert torch.equal(hvd.allreduce(own, op=op).double(), values), (dtype, op)
        averaged = hvd.allreduce(own)
        if dtype.is_floating_point:
            assert torch.allclose(averaged.double(), wide.mean(0), rtol=1e-3)
        else:
            assert torch.equal(averaged, wide.mean(0).to(dtype))
    own = of_rank(hvd.rank(), 4)
    before = own.clone()
    scaled = hvd.allreduce(own, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
    assert torch.equal(scaled, everyones(4).sum(0) * 2)
    assert torch.equal(own, before)
    assert hvd.allreduce_(own, op=hvd.Sum) is own
    assert torch.equal(own, everyones(4).sum(0))
    raises(ValueError, lambda: hvd.allreduce(own, average=True, op=hvd.Sum), "op=")


def case_push_pull_of_byteps() -> None:
    bps.init(lazy=False)  # does nothing: hvd.init() was called
    all_of = everyones(4)
    own = all_of[bps.rank()].clone()
    for average, expected in (True, all_of.mean(0)), (False, all_of.sum(0)):
        assert torch.allclose(bps.push_pull(own, average, "pushed"), expected)
        rounded = bps.push_pull(own, average, compression=bps.Compression.fp16)
        assert torch.allclose(rounded, expected, rtol=1e-3)
        handle = bps.push_pull_async(own, average, name="pushed", version=1, priority=2)
        assert torch.allclose(bps.synchronize(handle), expected)
        assert torch.equal(own, all_of[bps.rank()])
        for in_place in (
            bps.push_pull_inplace,
            lambda *args: bps.synchronize(bps.push_pull_async_inplace(*args)),
        ):
            changed = own.clone()
            assert in_place(changed, average, "in place") is changed
            assert torch.allclose(changed, expected)
    own.requires_grad_()
    bps.push_pull(own, average=False, name="with gradient").sum().backward()
    assert own.grad is not None
    assert torch.equal(own.grad, torch.full((4,), float(bps.size())))


def case_allreduce_of_what_is_not_contiguous() -> None:
    all_of = everyones(4, 6)
    assert torch.equal(hvd.allreduce(all_of[hvd.rank()].t(), op=hvd.Sum), all_of.sum(0).t())
    strided = all_of[hvd.rank()].clone()[:, ::2]
    hvd.allreduce_(strided, op=hvd.Sum)
    assert torch.equal(strided, all_of.sum(0)[:, ::2])


def case_grouped_allreduce() -> None:
    tensors = [of_rank(hvd.rank(), n, dtype=d) for n, d in ((3, torch.float32), (4, torch.int64))]
    summed = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    assert torch.equal(summed[0], everyones(3).sum(0))
    assert torch.equal(summed[1], everyones(4, dtype=torch.int64).sum(0))
    assert hvd.grouped_allreduce([]) == [] and hvd.grouped_allgather([]) == []
    assert hvd.grouped_allreduce_(tensors, op=hvd.Sum)[0] is tensors[0]
    assert torch.equal(tensors[1], summed[1])


def case_ranks_submit_in_any_order() -> None:
    for step in range(4):
        numbers = list(range(60))
        random.Random(100 * step + hvd.rank()).shuffle(numbers)
        handles = {}
        for n in numbers:
            own = torch.full((n + 1,), float(n + hvd.rank()))
            handles[n] = hvd.allreduce_async(own, name=f"tensor {n}", op=hvd.Sum)
        for n, handle in handles.items():
            expected = float(sum(n + rank for rank in range(hvd.size())))
            assert torch.equal(hvd.synchronize(handle), torch.full((n + 1,), expected))


def case_a_name_that_is_known_is_one_message() -> None:
    group = world.current().sets[0].group
    assert group is not None
    for _ in range(3):
        hvd.barrier()
        before = group.messages()
        hvd.allreduce(torch.ones(4), name="known")
        # The first rank answers each of the others.
        expected = hvd.size() - 1 if hvd.rank() == 0 else 1
        assert group.messages() - before == expected


def case_bad_tensors_are_refused_at_the_call() -> None:
    """On one rank alone: the others must not begin what it cannot."""
    for bad in (torch.ones(1).expand(4), torch.eye(4).to_sparse()):
        if hvd.rank() == 0:
            raises(RuntimeError, partial(hvd.allreduce_, bad, name="bad"), "tensor")
        assert hvd.allreduce(torch.ones(1), name="bad", op=hvd.Sum).item() == hvd.size()


def case_poll_and_synchronize() -> None:
    handle = hvd.allreduce_async(torch.ones(3), op=hvd.Sum)
    while not hvd.poll(handle):
        time.sleep(0)
    assert torch.equal(hvd.synchronize(handle), torch.full((3,), float(hvd.size())))
    assert hvd.synchronize(handle) is None
    raises(ValueError, lambda: hvd.poll(handle), "no operation in flight")


def case_allgather() -> None:
    for dtype in (*DTYPES, torch.bool):
        parts = [of_rank(rank, rank, 3, dtype=dtype) for rank in range(hvd.size())]
        assert torch.equal(hvd.allgather(parts[hvd.rank()]), torch.cat(parts))
    for rows in (2, 2, 5):  # it changes under one name
        parts = [of_rank(rank, rows + rank) for rank in range(hvd.size())]
        gathered = hvd.allgather(parts[hvd.rank()], name="rows")
        assert torch.equal(gathered, torch.cat(parts))
    both = hvd.grouped_allgather([torch.ones(1), torch.zeros(hvd.rank() + 1)])
    assert [len(one) for one in both] == [hvd.size(), hvd.size() * (hvd.size() + 1) // 2]
    raises(ValueError, lambda: hvd.allgather(torch.tensor(1.0)), "scalar")


def case_broadcast() -> None:
    for root in range(hvd.size()):
        for dtype in (*DTYPES, torch.bool):
            own = of_rank(hvd.rank(), 7, dtype=dtype)
            assert torch.equal(hvd.broadcast(own, root), of_rank(root, 7, dtype=dtype))
        own = of_rank(hvd.rank(), 2, 3)
        assert hvd.broadcast_(own, root) is own
        assert torch.equal(own, of_rank(root, 2, 3))
    raises(ValueError, lambda: hvd.broadcast(torch.ones(1), hvd.size()), "root_rank=")


def case_alltoall() -> None:
    n, me = hvd.size(), hvd.rank()
    own = torch.arange(2.0 * n) + 100 * me
    expected = torch.cat([torch.tensor([2.0 * me, 2.0 * me + 1]) + 100 * r for r in range(n)])
    assert torch.equal(hvd.alltoall(own), expected)
    # To rank r go r rows, or one more on odd ranks.
    splits = torch.tensor([r + me % 2 for r in range(n)], dtype=torch.int32)
    rows = torch.full((int(splits.sum()), 3), float(me))
    output, received = hvd.alltoall(rows, splits)
    assert received.tolist() == [me + r % 2 for r in range(n)]
    expected = torch.cat([torch.full((me + r % 2, 3), float(r)) for r in range(n)])
    assert torch.equal(output, expected)
    raises(ValueError, lambda: hvd.alltoall(rows, splits.float()), "int32")
    raises(ValueError, lambda: hvd.alltoall(rows, splits + 1), "sum")
    if n > 1:
        raises(ValueError, lambda: hvd.alltoall(torch.ones(n + 1)), "splits")


def case_reducescatter() -> None:
    n, me = hvd.size(), hvd.rank()
    for rows in (n, 2 * n + 1, n - 1):
        all_of = everyones(rows, 2)
        counts = [rows // n + (r < rows % n) for r in range(n)]
        own = torch.split(all_of.sum(0), counts)[me]
        assert torch.equal(hvd.reducescatter(all_of[me], op=hvd.Sum), own)
        assert torch.allclose(hvd.reducescatter(all_of[me]), own / n)
        twice = hvd.grouped_reducescatter([all_of[me], all_of[me]], op=hvd.Sum, prescale_factor=2.0)
        assert torch.equal(twice[1], 2 * own)
    raises(NotImplementedError, lambda: hvd.reducescatter(torch.ones(n), op=hvd.Max), "hvd.Max")


def case_sparse_allreduce() -> None:
    dense = everyones(6, 2) * torch.tensor([0, 1, 0, 1, 1, 0]).reshape(6, 1)
    finish = hvd.sparse_allreduce_async(dense[hvd.rank()].to_sparse(1), "sparse", hvd.Average)
    assert torch.allclose(hvd.synchronize(finish).to_dense(), dense.mean(0))


def case_errors_leave_all_usable() -> None:
    if hvd.size() == 1:
        return
    me = hvd.rank()
    bad: list[tuple[Callable[[], object], str]] = [
        (lambda: hvd.allreduce(torch.ones(3 + me), name="bad"), "shapes"),
        (lambda: hvd.allreduce(torch.ones(3), op=(hvd.Sum, hvd.Max)[me % 2], name="bad"), "Max"),
        (lambda: hvd.allreduce(torch.ones(3, dtype=DTYPES[me % 2]), name="bad"), "data types"),
        (lambda: hvd.allgather(torch.ones(1, 2 + me), name="bad"), "shapes"),
        (lambda: hvd.broadcast(torch.ones(3), me, name="bad"), "root rank"),
        (lambda: hvd.reducescatter(torch.ones(4, 1 + me), name="bad"), "shapes"),
    ]
    for what, words in bad:
        raises(hvd.HorovodInternalError, what, words)
        assert hvd.allreduce(torch.ones(1), name="bad", op=hvd.Sum).item() == hvd.size()


def case_a_name_twice() -> None:
    for _ in range(20):
        handle = hvd.allreduce_async(torch.ones(2), name="twice")
        raises(ValueError, lambda: hvd.allreduce_async(torch.ones(2), name="twice"), "twice")
        hvd.synchronize(handle)


def case_gradients_flow_back() -> None:
    n, me = hvd.size(), hvd.rank()
    x = of_rank(me, 2 * n, 2).requires_grad_()
    results = {
        "allreduce": (hvd.allreduce(x, op=hvd.Sum), float(n)),
        "average": (hvd.allreduce(x), 1.0),
        "grouped": (hvd.grouped_allreduce([x, x], op=hvd.Sum)[1], float(n)),
        "allgather": (hvd.allgather(x), 1.0),
        "alltoall": (hvd.alltoall(x), 1.0),
        "reducescatter": (hvd.reducescatter(x, op=hvd.Sum), float(n)),
        "broadcast": (hvd.broadcast(x, 0), 1.0 if me == 0 else 0.0),
    }
    for name, (result, expected) in results.items():
        x.grad = None
        result.sum().backward()
        assert x.grad is not None
        assert torch.allclose(x.grad, torch.full_like(x, expected)), name


def case_process_sets() -> None:
    n, me = hvd.size(), hvd.rank()
    if n < 2:
        return
    even = hvd.add_process_set(range(0, n, 2))
    odd = hvd.add_process_set(hvd.ProcessSet(range(1, n, 2)))
    own, other = (even, odd) if me % 2 == 0 else (odd, even)
    assert own.included() and not other.included()
    assert own.rank() == me // 2 and own.size() == len(own.ranks or [])
    summed = hvd.allreduce(torch.tensor([float(me)]), op=hvd.Sum, process_set=own)
    assert summed.item() == sum(own.ranks or [])
    root = (own.ranks or [])[-1]
    sent = hvd.broadcast(torch.tensor([me]), root, process_set=own)
    assert sent.item() == root
    outside = (other.ranks or [])[0]
    raises(ValueError, lambda: hvd.broadcast(torch.ones(1), outside, process_set=own), "root_rank=")
    raises(ValueError, lambda: hvd.allreduce(torch.ones(1), process_set=other), "is not in")
    raises(ValueError, lambda: hvd.add_process_set(list(range(n))), "there already")
    assert hvd.remove_process_set(odd) and not hvd.remove_process_set(odd)
    assert not hvd.remove_process_set(hvd.global_process_set)
    again = hvd.add_process_set(range(1, n, 2))
    if again.included():
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=again).item() == again.size()


def case_join() -> None:
    n, me = hvd.size(), hvd.rank()
    for round_ in range(3):
        first = round_ % n
        hvd.allreduce(torch.ones(2), name="before")
        if me != first:
            for _ in range(round_ + 1):
                summed = hvd.allreduce(torch.ones(2), op=hvd.Sum, name="meanwhile")
                assert torch.equal(summed, torch.full((2,), n - 1.0))
            if n > 1:
                raises(hvd.HorovodInternalError, lambda: hvd.allgather(torch.ones(1)), "has joined")
        last = hvd.join()
        assert n == 1 or last != first
        assert hvd.allgather_object(last) == [last] * n


def case_barrier_waits_for_all() -> None:
    if hvd.rank() == 0:
        time.sleep(0.3)
    begin = time.monotonic()
    hvd.barrier()
    if hvd.rank() == 0:
        return
    assert hvd.size() == 1 or time.monotonic() - begin < 30
