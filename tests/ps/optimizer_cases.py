"""Optimizers at the server against torch.optim, in a job of one worker.

torch's fused kernels compute as servers do, bit for bit, where torch was told to use no vectors
(ATEN_CPU_CAPABILITY=default): with them it fuses products and sums. Its loops round elsewhere.

Floor: tests. Thread: the worker's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import optim

from rdmacoll import ps

STEPS = 20
SIZE = 256 * 1024 + 77  # elements of two shards
RTOL, ATOL = 1e-5, 1e-6  # of float32, after STEPS roundings of values near 1

VARIANTS: list[tuple[type, type, dict[str, Any]]] = [
    (ps.SGD, optim.SGD, {"lr": 0.1}),
    (ps.SGD, optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (ps.SGD, optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    (ps.SGD, optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    (ps.SGD, optim.SGD, {"lr": 0.1, "maximize": True}),
    (ps.Adagrad, optim.Adagrad, {"lr": 0.1}),
    (ps.Adagrad, optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.01}),
    (ps.Adagrad, optim.Adagrad, {"initial_accumulator_value": 0.5, "eps": 1e-3}),
    (ps.Adam, optim.Adam, {}),
    (ps.Adam, optim.Adam, {"lr": 0.01, "betas": (0.4, 0.9), "weight_decay": 0.1}),
    (ps.Adam, optim.Adam, {"maximize": True, "eps": 1e-3}),
    (ps.AdamW, optim.AdamW, {}),
    (ps.AdamW, optim.AdamW, {"lr": 0.01, "weight_decay": 0.3, "maximize": True}),
]


def gradients(*shape: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator) for _ in range(STEPS)]


def first_values(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def assert_near(found: torch.Tensor, wanted: torch.Tensor, what: str) -> None:
    torch.testing.assert_close(
        found, wanted, rtol=RTOL, atol=ATOL, msg=lambda text: f"{what}: {text}"
    )


def by_torch(kind: type, options: dict[str, Any]) -> torch.Tensor:
    parameter = torch.nn.Parameter(first_values(SIZE))
    optimizer = kind([parameter], **options)
    for gradient in gradients(SIZE):
        parameter.grad = gradient
        optimizer.step()
    return parameter.detach()


def case_dense(kv: ps.KV) -> None:
    has_no_vectors = torch.backends.cpu.get_cpu_capability() == "DEFAULT"
    for number, (kind, torch_kind, options) in enumerate(VARIANTS):
        name, what = f"dense {number}", f"{kind.__name__} {options}"
        kv.init(name, first_values(SIZE), optimizer=kind(**options))
        for gradient in gradients(SIZE):
            kv.push(name, gradient)
        found = kv.pull(name)
        if has_no_vectors:
            fused = by_torch(torch_kind, {**options, "fused": True})
            assert torch.equal(found, fused), what
        loops = by_torch(torch_kind, {**options, "foreach": False, "fused": False})
        assert_near(found, loops, what)


DIM, ROWS = 7, 30


def some_rows(step: int) -> torch.Tensor:
    """Each row comes in other steps, so rows have had other numbers of steps."""
    return torch.tensor([row for row in range(ROWS) if (row * step) % 3 != 1])


def case_rows_by_torch(kv: ps.KV) -> None:
    """A row is as a parameter of its own."""
    for number, (kind, torch_kind, options) in enumerate(VARIANTS):
        name, what = f"rows {number}", f"{kind.__name__} {options}"
        kv.init_rows(name, DIM, optimizer=kind(**options), initial=ps.Normal(seed=3))
        parameters = [torch.nn.Parameter(row) for row in kv.row_pull(name, torch.arange(ROWS))]
        optimizer = torch_kind(parameters, **options, foreach=False, fused=False)
        for step, gradient in enumerate(gradients(ROWS, DIM)):
            rows = some_rows(step)
            optimizer.zero_grad()
            for row in rows.tolist():
                parameters[row].grad = gradient[row].clone()
            optimizer.step()
            kv.row_push(name, rows, gradient[rows])
        wanted = torch.stack([parameter.detach() for parameter in parameters])
        assert_near(kv.row_pull(name, torch.arange(ROWS)), wanted, what)


def case_row_wise_adagrad(kv: ps.KV) -> None:
    options: dict[str, Any] = {
        "lr": 0.1,
        "lr_decay": 0.1,
        "weight_decay": 0.01,
        "initial_accumulator_value": 0.5,
    }
    kv.init_rows("row-wise", DIM, optimizer=ps.RowwiseAdagrad(**options), initial=ps.Normal(seed=3))
    values = kv.row_pull("row-wise", torch.arange(ROWS)).double()
    sums, steps = torch.full((ROWS,), 0.5, dtype=torch.float64), [0] * ROWS
    for step, gradient in enumerate(gradients(ROWS, DIM)):
        rows = some_rows(step)
        kv.row_push("row-wise", rows, gradient[rows])
        for row in rows.tolist():
            steps[row] += 1
            direction = gradient[row] + 0.01 * values[row]
            sums[row] += direction.square().mean()
            rate = 0.1 / (1 + (steps[row] - 1) * 0.1)
            values[row] -= rate * direction / (sums[row].sqrt() + 1e-10)
    found = kv.row_pull("row-wise", torch.arange(ROWS))
    assert len(set(steps)) > 1
    assert_near(found, values.float(), "row-wise")


def case_rates_of_their_own(kv: ps.KV) -> None:
    """Of a dense table and of a row, which torch has as parameters."""
    has_no_vectors = torch.backends.cpu.get_cpu_capability() == "DEFAULT"
    for number, (kind, torch_kind, options) in enumerate(VARIANTS):
        name, rows, what = f"rates {number}", f"rates of {number}", f"{kind.__name__} {options}"
        kv.init(name, first_values(SIZE), optimizer=kind(**options))
        kv.init_rows(rows, SIZE // 100, optimizer=kind(**options))
        parameters = [torch.nn.Parameter(kv.pull(name)), torch.nn.Parameter(kv.row_pull(rows, [5]))]
        optimizer = torch_kind(parameters, **options, fused=has_no_vectors)
        made = optimizer.param_groups[0]["lr"]
        for step, gradient in enumerate(gradients(SIZE)):
            lr = None if step % 3 == 2 else made * (step % 5) / 4  # 0, too
            optimizer.param_groups[0]["lr"] = made if lr is None else lr
            of_row = gradient[None, : SIZE // 100]
            parameters[0].grad, parameters[1].grad = gradient, of_row.clone()
            optimizer.step()
            kv.push(name, gradient, lr=lr)
            kv.row_push(rows, [5], of_row, lr=lr)
        for found, wanted in zip((kv.pull(name), kv.row_pull(rows, [5])), parameters, strict=True):
            if has_no_vectors:
                assert torch.equal(found, wanted.detach()), what
            assert_near(found, wanted.detach(), what)


def case_an_id_that_comes_twice(kv: ps.KV) -> None:
    """It is one step, with the sum of its gradients."""
    kv.init_rows("twice", 1, optimizer=ps.SGD(lr=1.0, momentum=0.5))
    kv.row_push("twice", [5, 6, 5], torch.tensor([[1.0], [10.0], [2.0]]))
    assert kv.row_pull("twice", [5, 6]).flatten().tolist() == [-3.0, -10.0]
    kv.row_push("twice", [5], torch.tensor([[1.0]]))
    assert kv.row_pull("twice", [5, 6]).flatten().tolist() == [-5.5, -10.0]
