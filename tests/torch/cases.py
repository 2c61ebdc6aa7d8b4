"""Inputs that reduce exactly, references computed locally, and what gloo does not take.

All values are small integers (booleans, or complex numbers of small integers), so every order of
folding gives the same bits and results are compared bit for bit. Averages of floats are whole
numbers, too; those of integers are not, and their sums wrap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor
from world import backend

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
SIGNED = (torch.int64, torch.int32, torch.int16, torch.int8)
UNSIGNED = (torch.uint64, torch.uint32, torch.uint16, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
REDUCIBLE = (*FLOATS, *SIGNED, *UNSIGNED, torch.bool, *COMPLEX)
MOVABLE = (*REDUCIBLE, *FLOAT8)

Op = dist.ReduceOp
OpType = dist.ReduceOp.RedOpType
OPS = (Op.SUM, Op.AVG, Op.PRODUCT, Op.MIN, Op.MAX, Op.BAND, Op.BOR, Op.BXOR)
BITWISE = (Op.BAND, Op.BOR, Op.BXOR)

LARGE = 1_000_003  # odd, and several slots of every transport
PERIOD = 4 * 7 * 11 * 127  # of every formula in values()


def reduction_exists(dtype: torch.dtype, op: OpType) -> bool:
    """What the operation means for the type; what does not exist must raise."""
    if op == Op.AVG:
        return dtype != torch.bool
    if op in (Op.MIN, Op.MAX):
        return dtype not in COMPLEX
    if op in BITWISE:
        return dtype not in FLOATS and dtype not in COMPLEX
    return True


def reductions() -> Iterator[tuple[torch.dtype, OpType]]:
    yield from ((d, op) for d in REDUCIBLE for op in OPS if reduction_exists(d, op))


def small_counts(world: int) -> list[int]:
    return sorted({0, 1, world - 1, world, 1021})


def repeated(pattern: Callable[[int], Tensor], count: int) -> Tensor:
    """Its first `count` elements. One period is computed: of a large tensor that would take longer
    than all that is tested."""
    if count <= PERIOD:
        return pattern(count)
    period = pattern(PERIOD)
    tensor = period.new_empty(count)
    whole = count // PERIOD * PERIOD
    tensor[:whole].view(-1, PERIOD).copy_(period)
    tensor[whole:].copy_(period[: count - whole])
    return tensor


def values(rank: int, count: int, dtype: torch.dtype, op: OpType = Op.SUM) -> Tensor:
    """What `rank` contributes."""
    return repeated(lambda some: _values(rank, torch.arange(some), dtype, op), count)


def _values(rank: int, i: Tensor, dtype: torch.dtype, op: OpType) -> Tensor:
    if dtype == torch.bool:
        return (i * 5 + rank * 3) % 7 < 4
    if dtype in COMPLEX:
        real, imaginary = (_integers(rank, j, op) for j in (i, i + 1))
        return torch.complex(real.double(), imaginary.double()).to(dtype)
    uneven = op == Op.AVG and dtype not in FLOATS
    base = 9 * _integers(rank, i, Op.SUM) if uneven else _integers(rank, i, op)
    return (base.abs() if dtype in UNSIGNED else base).to(dtype)


def _integers(rank: int, i: Tensor, op: OpType) -> Tensor:
    if op == Op.PRODUCT:
        return torch.tensor([1, 2, 1, -1])[(i + rank * 3) % 4]
    if op in BITWISE:
        return (i * 37 + rank * 101) % 127 - 63
    base = (i * 7 + rank * 13) % 11 - 5
    return base * dist.get_world_size() if op == Op.AVG else base


def reduced(inputs: list[Tensor], op: OpType) -> Tensor:
    """The exact result for these contributions, folded in a wide type."""
    dtype = inputs[0].dtype
    wide = torch.int64
    if dtype in FLOATS:
        wide = torch.float64
    elif dtype in COMPLEX:
        wide = torch.complex128
    elif dtype == torch.bool:
        wide = torch.bool
    folds: dict[OpType, Callable[[Tensor, Tensor], Tensor]] = {
        Op.SUM: torch.logical_or if wide == torch.bool else torch.add,
        Op.AVG: torch.add,
        Op.PRODUCT: torch.logical_and if wide == torch.bool else torch.mul,
        Op.MIN: torch.minimum,
        Op.MAX: torch.maximum,
        Op.BAND: torch.bitwise_and,
        Op.BOR: torch.bitwise_or,
        Op.BXOR: torch.bitwise_xor,
    }
    total = functools.reduce(folds[op], (t.to(wide) for t in inputs))
    if op != Op.AVG:
        return total.to(dtype)
    if wide == torch.int64:
        return total.to(dtype).to(wide).div(len(inputs), rounding_mode="trunc").to(dtype)
    return (total / len(inputs)).to(dtype)


def expect_reduced(
    count: int, dtype: torch.dtype, op: OpType, ranks: list[int] | None = None
) -> Tensor:
    members = range(dist.get_world_size()) if ranks is None else ranks
    return repeated(
        lambda some: reduced([values(rank, some, dtype, op) for rank in members], op), count
    )


def same_bits(actual: Tensor, expected: Tensor) -> bool:
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    return torch.equal(_bytes(actual), _bytes(expected))


def _bytes(tensor: Tensor) -> Tensor:
    packed = torch.empty(tensor.numel(), dtype=tensor.dtype)
    return packed.copy_(tensor.reshape(-1)).view(torch.uint8)


def check(actual: Tensor, expected: Tensor, *what: object) -> None:
    """AssertionError names the combination and the first element that differs."""
    if same_bits(actual, expected):
        return
    case = ", ".join(map(str, what))
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        raise AssertionError(
            f"{case}: got {actual.dtype} {list(actual.shape)}, "
            f"expected {expected.dtype} {list(expected.shape)}"
        )
    pairs = zip(actual.reshape(-1).tolist(), expected.reshape(-1).tolist(), strict=True)
    wrong = [(i, a, b) for i, (a, b) in enumerate(pairs) if a != b]
    raise AssertionError(
        f"{case}: {len(wrong)} of {actual.numel()} elements differ, first (index, got, expected) "
        f"{wrong[:3]} on rank {dist.get_rank()}"
    )


# --- layouts: the same values in memory that is not simply contiguous --------------------------


def contiguous(tensor: Tensor) -> Tensor:
    return tensor.clone()


def offset(tensor: Tensor) -> Tensor:
    """Contiguous, but not aligned to more than one element."""
    whole = torch.empty(tensor.numel() + 1, dtype=tensor.dtype)
    return whole[1:].copy_(tensor)


def strided(tensor: Tensor) -> Tensor:
    """Every third element of a larger tensor."""
    whole = torch.zeros(3 * tensor.numel(), dtype=tensor.dtype)
    return whole[::3].copy_(tensor)


LAYOUTS = (contiguous, offset, strided)
Layout = Callable[[Tensor], Tensor]

# --- gloo (torch 2.13) --------------------------------------------------------------------------

_GLOO_TYPES = (*FLOATS, *COMPLEX, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
_GLOO_STRIDED = ("all_gather", "all_gather_into_tensor", "gather", "all_to_all")


def lacks(
    kind: str, dtype: torch.dtype, op: OpType | None = None, layout: Layout = contiguous
) -> str:
    """Why gloo cannot take part in this combination; empty for any other backend."""
    if backend() != "gloo":
        return ""
    if layout is strided and kind not in _GLOO_STRIDED:
        return "refuses tensors that are not contiguous, or returns garbage"
    if kind == "p2p":
        return ""
    if dtype not in _GLOO_TYPES:
        return "Invalid scalar type"
    if dtype in COMPLEX and (kind == "gather" or op == Op.PRODUCT):
        return "does not support complex tensors here"
    if op == Op.AVG and dtype not in FLOATS and dtype not in COMPLEX:
        return "has no average of integers"
    if dtype == torch.bool and op == Op.SUM:
        return "adds the bytes of booleans: True + True is 2"
    return ""


def done(work: dist.Work | None) -> None:
    """Waits for the work of an async call; a sync call has none."""
    if work is not None:
        work.wait()


def me() -> tuple[int, int]:
    return dist.get_rank(), dist.get_world_size()
