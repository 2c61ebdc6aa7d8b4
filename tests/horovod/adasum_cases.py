"""op=hvd.Adasum, against its formula in numpy, in double. Floor: tests."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from named_operation_cases import raises

import rdmacoll.horovod as hvd

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def is_refused() -> bool:
    """By a world whose size is no power of two."""
    return hvd.size() & (hvd.size() - 1) != 0


def reference(tensors: torch.Tensor) -> np.ndarray:
    """Of a row for each rank."""
    rows = [row.flatten() for row in tensors.double().numpy()]
    while len(rows) > 1:
        rows = [added(*rows[i : i + 2]) for i in range(0, len(rows), 2)]
    return rows[0].reshape(tensors.shape[1:])


def added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dot = float(a @ b)
    of_a, of_b = float(a @ a), float(b @ b)
    share_of_a = 1 - dot / (2 * of_a) if of_a > 0 else 1.0
    share_of_b = 1 - dot / (2 * of_b) if of_b > 0 else 1.0
    return share_of_a * a + share_of_b * b


def everyones(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(hvd.size(), *shape, generator=generator, dtype=torch.float64).to(dtype)


def check_close(got: torch.Tensor, tensors: torch.Tensor, factor: float = 1.0) -> None:
    """Within some roundings of the largest element that there is."""
    expected = reference(tensors) * factor
    assert got.dtype == tensors.dtype and got.shape == tensors.shape[1:]
    if got.numel() == 0:
        return
    largest = max(tensors.double().abs().max().item() * factor, np.abs(expected).max())
    error = np.abs(got.double().numpy() - expected).max()
    assert error <= 4 * torch.finfo(got.dtype).eps * largest, (error, largest, tensors)


def adasum(tensors: torch.Tensor, **options: Any) -> torch.Tensor:
    return hvd.allreduce(tensors[hvd.rank()], op=hvd.Adasum, **options)


def case_a_world_that_is_no_power_of_two_is_refused() -> None:
    if is_refused():
        raises(
            NotImplementedError, lambda: hvd.allreduce(torch.ones(2), op=hvd.Adasum), "power of two"
        )
    else:
        whole = torch.ones(2, dtype=torch.int32)
        raises(ValueError, lambda: hvd.allreduce(whole, op=hvd.Adasum), "floating-point")


def case_what_all_say_counts_once() -> None:
    n = hvd.size()
    if is_refused():
        return
    for dtype in FLOATS:
        own = torch.tensor([3.0, 4.0, -5.0], dtype=dtype)
        assert torch.equal(hvd.allreduce(own, op=hvd.Adasum), own), "alike"
        apart = torch.zeros(n, dtype=dtype)
        apart[hvd.rank()] = 2.0
        assert torch.equal(hvd.allreduce(apart, op=hvd.Adasum), torch.full((n,), 2.0, dtype=dtype))


def special(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Where products are lost if they are not computed with care."""
    n = hvd.size()
    info = torch.finfo(dtype)
    row = everyones(37, dtype=torch.float64)[0]
    signs = torch.tensor([(-1.0) ** rank for rank in range(n)], dtype=torch.float64).reshape(n, 1)
    sizes = torch.arange(1.0, n + 1, dtype=torch.float64).reshape(n, 1)
    nearly = (row * signs).to(dtype)
    nearly[:, 5] *= 1 + 2 * info.eps
    nearly[0, 7] = 0
    left = torch.zeros(n, 3, dtype=torch.float64)
    left[:, :1] = torch.where(torch.arange(n).reshape(n, 1) < 2, signs, 0)
    left[:, 1:2] = torch.where(torch.arange(n).reshape(n, 1) < 2, info.tiny * 8, 0.5)
    zero_somewhere = everyones(37, dtype=torch.float64)
    zero_somewhere[n // 2 :] = 0
    return {
        "parallel": (row * sizes).to(dtype),
        "opposite": (row * signs).to(dtype),
        "nearly opposite": nearly,
        "opposite but for something tiny": left.to(dtype),
        "zeros": torch.zeros(n, 37, dtype=dtype),
        "zeros of some": zero_somewhere.to(dtype),
        "of very different sizes": (everyones(37, dtype=torch.float64) * 0.1**sizes).to(dtype),
    }


def case_the_formula() -> None:
    if is_refused():
        return
    for dtype in FLOATS:
        for numbers in (1, 2, 5, 64, 1031, 40000):
            tensors = everyones(numbers, dtype=dtype, seed=numbers)
            check_close(adasum(tensors), tensors)
        for name, tensors in special(dtype).items():
            try:
                check_close(adasum(tensors), tensors)
            except AssertionError as error:
                raise AssertionError(f"{name}, {dtype}") from error


def case_what_is_tiny_and_what_is_huge() -> None:
    """Squares are of doubles, so that none of a float is 0 or infinite."""
    if is_refused():
        return
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        info = torch.finfo(dtype)
        of_one = everyones(50, dtype=torch.float64).clamp(-3, 3)
        for factor in (info.tiny, info.max / 64):
            tensors = (of_one * factor).to(dtype)
            check_close(adasum(tensors), tensors)
    for factor in (1e-60, 1e140):
        tensors = everyones(50, dtype=torch.float64) * factor
        check_close(adasum(tensors), tensors)


def case_all_ranks_have_the_same_bits() -> None:
    if is_refused():
        return
    got = adasum(everyones(1003))
    everyone_has = hvd.allgather(got.unsqueeze(0))
    assert torch.equal(everyone_has, everyone_has[:1].expand_as(everyone_has))


def case_shapes() -> None:
    if is_refused():
        return
    for shape in ((), (0,), (3, 0), (1,), (2, 3, 4)):
        tensors = everyones(*shape)
        check_close(adasum(tensors), tensors)
    tensors = everyones(6, 4)
    own = tensors[hvd.rank()].clone().t()
    assert hvd.allreduce_(own, op=hvd.Adasum) is own
    check_close(own, tensors.transpose(1, 2))
    assert hvd.grouped_allreduce([], op=hvd.Adasum) == []


def case_several_tensors_of_several_dtypes() -> None:
    if is_refused():
        return
    for seed in range(4):
        kinds = [(n, dtype) for n in (0, 1, 3, 700) for dtype in FLOATS]
        random.Random(seed).shuffle(kinds)
        several = [everyones(n, dtype=dtype, seed=seed) for n, dtype in kinds]
        got = hvd.grouped_allreduce([one[hvd.rank()] for one in several], op=hvd.Adasum)
        for one, tensors in zip(got, several, strict=True):
            check_close(one, tensors)


def case_factors() -> None:
    if is_refused():
        return
    for dtype in FLOATS:
        tensors = everyones(31, dtype=dtype)
        check_close(adasum(tensors, prescale_factor=0.5, postscale_factor=6.0), tensors, 3.0)
        own = tensors[hvd.rank()]
        before = own.clone()
        hvd.allreduce(own, op=hvd.Adasum, prescale_factor=2.0)
        assert torch.equal(own, before)


def case_ranks_wait_in_opposite_orders() -> None:
    """With other operations in between, that run in the order of all ranks, too."""
    if is_refused():
        return
    numbers = list(range(24))
    for step in range(4):
        random.Random(100 * step + hvd.rank()).shuffle(numbers)
        handles = {}
        for n in numbers:
            tensors = everyones(100 * n + 1, seed=n)
            op = hvd.Sum if n % 3 == 0 else hvd.Adasum
            handles[n] = hvd.allreduce_async(tensors[hvd.rank()], name=f"number {n}", op=op)
        for n in sorted(numbers, reverse=hvd.rank() % 2 == 0):
            tensors, got = everyones(100 * n + 1, seed=n), hvd.synchronize(handles[n])
            if n % 3 == 0:
                assert torch.allclose(got, tensors.sum(0), atol=1e-5)
            else:
                check_close(got, tensors)
        hvd.barrier()


def case_what_was_polled_is_there() -> None:
    if is_refused():
        return
    tensors = everyones(50000)
    own = tensors[hvd.rank()].clone()
    handle = hvd.allreduce_async_(own, op=hvd.Adasum)
    while not hvd.poll(handle):
        time.sleep(0)
    check_close(own, tensors)
    assert hvd.synchronize(handle) is own


def case_disagreement_is_said_and_leaves_all_usable() -> None:
    if is_refused() or hvd.size() == 1:
        return
    me = hvd.rank()
    call = partial(hvd.allreduce, name="bad")
    bad: list[tuple[Callable[[], object], str]] = [
        (lambda: call(torch.ones(3 + me), op=hvd.Adasum), "shapes"),
        (lambda: call(torch.ones(3), op=(hvd.Adasum, hvd.Sum)[me % 2]), "Adasum"),
        (lambda: call(torch.ones(3, dtype=FLOATS[me % 2]), op=hvd.Adasum), "data types"),
        (lambda: call(torch.ones(3), op=hvd.Adasum, prescale_factor=1.0 + me), "prescale"),
    ]
    for what, words in bad:
        raises(hvd.HorovodInternalError, what, words)
        raises(hvd.HorovodInternalError, what, 'under the name "allreduce.bad"')
        assert torch.equal(call(torch.ones(2), op=hvd.Adasum), torch.ones(2))


def case_a_name_twice() -> None:
    if is_refused():
        return
    handle = hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Adasum)
    again = partial(hvd.allreduce_async, torch.ones(2), name="twice", op=hvd.Adasum)
    raises(ValueError, again, "twice")
    hvd.synchronize(handle)


def case_a_rank_that_has_joined_changes_nothing() -> None:
    n, me = hvd.size(), hvd.rank()
    if is_refused():
        return
    tensors = everyones(2000)
    tensors[0] = 0
    early = hvd.allreduce_async(tensors[me], name="early", op=hvd.Adasum)
    if me != 0:  # who joins may have something in flight
        for _ in range(3):
            check_close(hvd.allreduce(tensors[me], name="meanwhile", op=hvd.Adasum), tensors)
    last = hvd.join()
    assert n == 1 or last != 0
    check_close(hvd.synchronize(early), tensors)


def case_process_sets() -> None:
    n = hvd.size()
    if is_refused() or n < 2:
        return
    sets = [hvd.add_process_set(range(first, n, 2)) for first in range(2)]
    own = sets[hvd.rank() % 2]
    tensors = everyones(300)
    got = hvd.allreduce(tensors[hvd.rank()], op=hvd.Adasum, process_set=own)
    check_close(got, tensors[own.ranks])


def case_a_rank_that_leaves_in_the_midst() -> None:
    """All end: by a result, or by an error."""
    if is_refused():
        return
    for step in range(6):
        tensors = everyones(200_000)
        hvd.barrier()
        handles = []
        with suppress(RuntimeError):  # who has not submitted it before the other leaves
            for n in range(4):
                own = tensors[hvd.rank()]
                handles.append(hvd.allreduce_async(own, name=f"number {n}", op=hvd.Adasum))
        if hvd.rank() == hvd.size() - 1:
            time.sleep(0.003 * step)
            hvd.shutdown()
        else:
            for handle in handles:
                with suppress(hvd.HorovodInternalError):
                    check_close(hvd.synchronize(handle), tensors)
            hvd.shutdown()
        hvd.init()
