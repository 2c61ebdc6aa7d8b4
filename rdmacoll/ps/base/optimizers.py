"""The optimizers that servers apply pushes with, and what rows begin with.

Names, defaults and formulas are those of torch.optim (foreach=False, fused=False).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch

from ..._extension import extension

if TYPE_CHECKING:
    from ... import _C


@dataclass(frozen=True)
class SGD:
    """torch.optim.SGD."""

    lr: float = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    maximize: bool = False


@dataclass(frozen=True)
class Adagrad:
    """torch.optim.Adagrad."""

    lr: float = 1e-2
    lr_decay: float = 0.0
    weight_decay: float = 0.0
    initial_accumulator_value: float = 0.0
    eps: float = 1e-10
    maximize: bool = False


@dataclass(frozen=True)
class RowwiseAdagrad(Adagrad):
    """Adagrad with one sum for all elements of a row: the mean of the gradient's squares is added.

    It is for tables of rows, whose state is then a float a row and not as large as the table.
    """


@dataclass(frozen=True)
class Adam:
    """torch.optim.Adam. A row counts the steps that it has had itself."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    maximize: bool = False


@dataclass(frozen=True)
class AdamW(Adam):
    """torch.optim.AdamW. A row counts the steps that it has had itself."""

    weight_decay: float = 1e-2


Optimizer = SGD | Adagrad | RowwiseAdagrad | Adam | AdamW


def as_text(optimizer: Optimizer | None) -> str:
    """For people: its name, and what is not as by default."""
    if optimizer is None:
        return "none"
    changed = [
        f"{one.name}={getattr(optimizer, one.name)}"
        for one in fields(optimizer)
        if getattr(optimizer, one.name) != one.default
    ]
    return f"{type(optimizer).__name__}({', '.join(changed)})"


def to_engine(optimizer: Optimizer | None) -> _C.PsOptimizer | None:
    """Raises TypeError for another class, ValueError for what no optimizer takes."""
    if optimizer is None:
        return None
    kinds = extension().OptimizerKind
    known: dict[type, Any] = {
        SGD: kinds.SGD,
        Adagrad: kinds.ADAGRAD,
        RowwiseAdagrad: kinds.ROWWISE_ADAGRAD,
        Adam: kinds.ADAM,
        AdamW: kinds.ADAMW,
    }
    if type(optimizer) not in known:
        raise TypeError(
            f"optimizer is a {type(optimizer).__name__}; give one of rdmacoll.ps: "
            + ", ".join(kind.__name__ for kind in known)
        )
    made = extension().PsOptimizer(known[type(optimizer)])
    for name, value in vars(optimizer).items():
        if name == "betas":
            made.beta1, made.beta2 = value
        else:
            setattr(made, name, value)
    made.check()
    return made


@dataclass(frozen=True)
class Constant:
    """Rows begin with this value in all elements."""

    value: float = 0.0


@dataclass(frozen=True)
class Uniform:
    """Elements begin with values between `low` and `high`, which seed, id and place determine."""

    low: float
    high: float
    seed: int = 0


@dataclass(frozen=True)
class Normal:
    """Likewise, of a normal distribution."""

    mean: float = 0.0
    std: float = 1.0
    seed: int = 0


Initial = Constant | Uniform | Normal


def initial_to_engine(initial: Initial) -> tuple[_C.InitialKind, float, float, int]:
    """Raises TypeError for another class."""
    kinds = extension().InitialKind
    if isinstance(initial, Constant):
        return kinds.CONSTANT, initial.value, 0.0, 0
    if isinstance(initial, Uniform):
        return kinds.UNIFORM, initial.low, initial.high, initial.seed
    if isinstance(initial, Normal):
        return kinds.NORMAL, initial.mean, initial.std, initial.seed
    raise TypeError(
        f"initial is a {type(initial).__name__}; give rdmacoll.ps.Constant, Uniform or Normal"
    )


def check_float32(argument: str, tensor: torch.Tensor) -> None:
    """What servers hold."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{argument} is a {type(tensor).__name__}; give a tensor")
    if tensor.dtype != torch.float32:
        raise TypeError(f"{argument} has dtype {tensor.dtype}; servers hold float32: convert it")
