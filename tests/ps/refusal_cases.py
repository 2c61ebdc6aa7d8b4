"""What KV refuses: each call raises the error that is named before anything moves, and says which
argument is wrong. There are two workers.

Floor: tests. Thread: the workers'.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.distributed as dist

from rdmacoll import ps
from rdmacoll._extension import extension

Call = Callable[[], object]


def check(*refusals: tuple[type[Exception], str, Call]) -> None:
    for error, words, call in refusals:
        with pytest.raises(error, match=words):
            call()


def case_values(kv: ps.KV) -> None:
    kv.init("w", torch.zeros(2, 3))
    bad: Any = [1.0] * 6
    for argument, call in (
        ("values", lambda values: kv.push("w", values)),
        ("values", lambda values: kv.push_pull("w", values)),
        ("out", lambda values: kv.pull("w", out=values)),
        ("out", lambda values: kv.push_pull("w", torch.ones(2, 3), out=values)),
    ):
        check(
            (TypeError, f"{argument} is a list", partial(call, bad)),
            (TypeError, "float64", partial(call, torch.ones(2, 3, dtype=torch.float64))),
            (TypeError, "bfloat16", partial(call, torch.ones(2, 3).bfloat16())),
            (ValueError, r"shape \(3, 2\); 'w' takes", partial(call, torch.ones(3, 2))),
            (ValueError, r"shape \(6,\)", partial(call, torch.ones(6))),
            (ValueError, "not contiguous", partial(call, torch.ones(3, 2).t())),
            (ValueError, "meta", partial(call, torch.ones(2, 3, device="meta"))),
            (ValueError, "sparse", partial(call, torch.ones(2, 3).to_sparse())),
        )
    two = torch.ones(2)
    not_a_number: Any = 1.0
    nothing: Any = None
    check(
        (ValueError, r"first=5; .* the 6 elements of 'w'", lambda: kv.push_range("w", 5, two)),
        (ValueError, "first=-1", lambda: kv.push_range("w", -1, two)),
        (ValueError, r"shape \(1, 2\)", lambda: kv.push_range("w", 0, two[None])),
        (TypeError, "first is a float", lambda: kv.push_range("w", not_a_number, two)),
        (TypeError, "float64", lambda: kv.push_range("w", 0, two.double())),
        (ValueError, "is no table", lambda: kv.push_range("no", 0, two)),
        (ValueError, r"out has .* first=5; .* of 'w'", lambda: kv.pull_range("w", 5, two)),
        (ValueError, r"shape \(1, 2\)", lambda: kv.pull_range("w", 0, two[None])),
        (TypeError, "first is a float", lambda: kv.pull_range("w", not_a_number, two)),
        (TypeError, "float64", lambda: kv.pull_range("w", 0, two.double())),
        (TypeError, "out is a NoneType", lambda: kv.pull_range("w", 0, nothing)),
        (ValueError, "is no table", lambda: kv.pull_range("no", 0, two)),
    )
    dist.barrier()
    assert torch.equal(kv.pull("w"), torch.zeros(2, 3))


def case_memory(kv: ps.KV) -> None:
    not_a_number: Any = 2.5
    check(
        (ValueError, r"size=\(2, -1\) has a negative", lambda: kv.empty(2, -1)),
        (TypeError, r"size=\(2.5,\) has a float", lambda: kv.empty(not_a_number)),
    )
    assert kv.empty(0).shape == kv.empty((2, 0)).view(0).shape == (0,)


def case_names(kv: ps.KV) -> None:
    kv.init("dense", torch.zeros(2))
    kv.init_rows("rows", dim=2)
    two = torch.ones(2)
    name: Any = 5
    check(
        (ValueError, "'no' is no table of this KV", lambda: kv.push("no", two)),
        (ValueError, "'no' is no table of this KV", lambda: kv.pull("no")),
        (ValueError, "'no' is no table of this KV", lambda: kv.push_pull("no", two)),
        (ValueError, "'no' is no table of this KV", lambda: kv.row_pull("no", [1])),
        (ValueError, "'no' is no table of this KV", lambda: kv.row_push("no", [1], two[None])),
        (ValueError, "is dense; use push", lambda: kv.row_pull("dense", [1, 2])),
        (ValueError, "'dense' is dense", lambda: kv.row_push("dense", [1], two[None])),
        (ValueError, r"'rows' has rows; use row_push\(\)", lambda: kv.pull("rows")),
        (ValueError, r"'rows' has rows; use row_push\(\)", lambda: kv.push("rows", two)),
        (TypeError, "name is a int", lambda: kv.init(name, two)),
        (TypeError, "name is a int", lambda: kv.init_rows(name, dim=2)),
        (TypeError, "name is a int", lambda: kv.pull(name)),
        (ValueError, "0 bytes", lambda: kv.init("", two)),
        (ValueError, "201 bytes; a name has 1 to 200", lambda: kv.init("x" * 201, two)),
        (ValueError, "201 bytes", lambda: kv.init_rows("x" * 201, dim=2)),
        (ValueError, "202 bytes", lambda: kv.init("\u00e9" * 101, two)),
    )
    for longest in "x" * 200, "\u00e9" * 100, "a/b c\n'\"\0d":
        kv.init(longest, two)
        assert torch.equal(kv.pull(longest), two)


def case_tables(kv: ps.KV) -> None:
    any_value: Any = None
    refused = "refused"
    check(
        (TypeError, "values is a NoneType", lambda: kv.init(refused, any_value)),
        (TypeError, "int64", lambda: kv.init(refused, torch.ones(2, dtype=torch.int64))),
        (ValueError, "not contiguous", lambda: kv.init(refused, torch.ones(2, 3).t())),
        (ValueError, "0 elements", lambda: kv.init(refused, torch.ones(0))),
        (ValueError, "dim=0", lambda: kv.init_rows(refused, dim=0)),
        (ValueError, "dim=-1", lambda: kv.init_rows(refused, dim=-1)),
        (ValueError, "dim=65537", lambda: kv.init_rows(refused, dim=64 * 1024 + 1)),
        (TypeError, "dim is a float", lambda: kv.init_rows(refused, dim=any_float())),
        (TypeError, "dim is a bool", lambda: kv.init_rows(refused, dim=True)),
        (ValueError, "rows=0", lambda: kv.init_rows(refused, dim=1, rows=0)),
        (TypeError, "rows is a float", lambda: kv.init_rows(refused, dim=1, rows=any_float())),
        (ValueError, "not finite", lambda: kv.init_rows(refused, 1, initial=ps.Constant(1e999))),
        (TypeError, "initial is a NoneType", lambda: kv.init_rows(refused, 1, initial=any_value)),
    )
    kv.init(refused, torch.ones(dist.get_world_size()))  # nobody has that name
    assert len(kv.pull(refused)) == dist.get_world_size()


def any_float() -> Any:
    return 2.0


def case_optimizers(kv: ps.KV) -> None:
    def init(optimizer: Any) -> Call:
        return lambda: kv.init("not with this", torch.ones(3), optimizer=optimizer)

    parameters = [torch.zeros(1, requires_grad=True)]
    check(
        (TypeError, "optimizer is a type", init(ps.SGD)),
        (TypeError, "give one of rdmacoll.ps: SGD, ", init(torch.optim.SGD(parameters))),
        (ValueError, "lr is -1", init(ps.SGD(lr=-1.0))),
        (ValueError, "lr is nan", init(ps.Adam(lr=float("nan")))),
        (ValueError, "momentum is -0.5", init(ps.SGD(momentum=-0.5))),
        (ValueError, "nesterov", init(ps.SGD(nesterov=True))),
        (ValueError, "beta2 is 1", init(ps.Adam(betas=(0.9, 1.0)))),
        (ValueError, "eps is -1", init(ps.AdamW(eps=-1.0))),
        (ValueError, "weight_decay is -1", init(ps.Adagrad(weight_decay=-1.0))),
        (ValueError, "for tables of rows", init(ps.RowwiseAdagrad())),
    )


def case_another_table_than_the_first_workers(kv: ps.KV) -> None:
    first = dist.get_rank() == 0
    if first:
        kv.init("dense of first", torch.zeros(6), optimizer=ps.SGD(lr=1.0))
        kv.init_rows("rows of first", dim=2, rows=5)
    dist.barrier()
    if not first:
        other = "is another one for the worker that was first"
        sgd, zeros = ps.SGD(lr=1.0), torch.zeros(6)
        check(
            (ValueError, other, lambda: kv.init("dense of first", torch.zeros(7), optimizer=sgd)),
            (ValueError, other, lambda: kv.init("dense of first", zeros.view(2, 3), optimizer=sgd)),
            (ValueError, other, lambda: kv.init("dense of first", zeros)),
            (ValueError, other, lambda: kv.init("dense of first", zeros, optimizer=ps.SGD(lr=2.0))),
            (ValueError, other, lambda: kv.init_rows("dense of first", dim=6)),
            (ValueError, other, lambda: kv.init("rows of first", torch.zeros(2))),
            (ValueError, other, lambda: kv.init_rows("rows of first", dim=2)),
            (ValueError, other, lambda: kv.init_rows("rows of first", dim=2, rows=6)),
            (ValueError, other, lambda: kv.init_rows("rows of first", 2, 5, ps.SGD())),
            (ValueError, other, lambda: kv.init_rows("rows of first", 2, 5, None, ps.Constant(1))),
            (ValueError, "is no table of this KV", lambda: kv.pull("dense of first")),
        )
        kv.init("dense of first", torch.ones(6), optimizer=sgd)
        kv.init_rows("rows of first", dim=2, rows=5)
    assert torch.equal(kv.pull("dense of first"), torch.zeros(6))


def case_ids(kv: ps.KV) -> None:
    kv.init_rows("ten rows", dim=2, rows=10)
    kv.init_rows("any rows", dim=2)
    one = torch.ones(1, 2)
    for wrong in (-1, 10, 2**63 - 1, -(2**63)):
        for ids in [wrong], [3, wrong], [wrong, 4, wrong]:
            words = f"id {wrong} is not in table 'ten rows', which has 10 rows"
            values = one.expand(len(ids), 2).contiguous()
            check(
                (ValueError, words, partial(kv.row_pull, "ten rows", ids)),
                (ValueError, words, partial(kv.row_push, "ten rows", ids, values)),
            )
    no_ids: list[Any] = [
        [1.0],
        torch.ones(1),
        torch.ones(1, dtype=torch.bool),
        torch.ones(1) * 1j,
        [True],
    ]
    for ids in no_ids:
        check(
            (TypeError, "ids has dtype", partial(kv.row_pull, "any rows", ids)),
            (TypeError, "ids has dtype", partial(kv.row_push, "any rows", ids, one)),
        )
    any_ids: Any = ["a"]
    check(
        (ValueError, r"shape \(1, 2\); 'any rows' takes \(2, 2\)", lambda: push_two(kv, one)),
        (ValueError, r"shape \(2, 1\)", lambda: push_two(kv, torch.ones(2, 1))),
        (ValueError, r"shape \(4,\)", lambda: push_two(kv, torch.ones(4))),
        (TypeError, "float64", lambda: push_two(kv, torch.ones(2, 2, dtype=torch.float64))),
        (ValueError, "out has shape", lambda: kv.row_pull("any rows", [1, 2], out=one)),
        (ValueError, "not contiguous", lambda: push_two(kv, torch.ones(2, 4)[:, ::2])),
        (TypeError, "ids make no tensor", lambda: kv.row_pull("any rows", any_ids)),
        (TypeError, "ids make no tensor", lambda: kv.row_pull("any rows", [2**63])),
    )
    dist.barrier()
    assert not kv.row_pull("ten rows", torch.arange(10)).any()
    assert not kv.row_pull("any rows", [1, 2]).any()


def push_two(kv: ps.KV, values: torch.Tensor) -> object:
    return kv.row_push("any rows", [1, 2], values)


def case_timeouts(kv: ps.KV) -> None:
    kv.init("timed", torch.zeros(2))
    not_seconds: Any = "soon"
    check(
        (ValueError, "timeout=-1", lambda: ps.KV(timeout=-1.0)),
        (ValueError, "timeout=nan", lambda: ps.connect(timeout=float("nan"))),
        (TypeError, "timeout is a str", lambda: ps.KV(timeout=not_seconds)),
        (TypeError, "timeout is a bool", lambda: ps.KV(timeout=True)),
        (ValueError, "timeout=-1", lambda: kv.push("timed", torch.ones(2)).wait(timeout=-1.0)),
    )


def case_a_first_worker_that_never_gives_the_values(kv: ps.KV) -> None:
    if dist.get_rank() == 0:
        spec = extension().PsTableSpec.dense("half made", 3, None)
        about = ["dense", "none"]
        kv._worker.board.add_table("half made", spec.encode(), (3,), about)  # as init() begins
    dist.barrier()
    impatient = ps.KV(timeout=0.5)
    began = time.monotonic()
    words = r"first to call init\('half made'\) has not given"
    check((TimeoutError, words, lambda: impatient.init("half made", torch.zeros(3))))
    assert time.monotonic() - began >= 0.5
