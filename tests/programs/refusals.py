"""Calls that must raise. Some raise before anything moves, and their group works as before. Others
are made in a group of their own, which fails as a whole.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

ERRORS = (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError)

Refused = Callable[[Any, int, int], Any]  # (group, this rank in it, its size)


def _op(name: str) -> Any:
    return getattr(dist.ReduceOp, name)


def _ones(count: int = 4, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(count, dtype=dtype)


def _backend(group: Any) -> Any:
    return group._get_backend(torch.device("cpu"))


def _meta() -> Tensor:
    return torch.empty(3, device="meta")


def _broadcast_options(root: int) -> Any:
    options = dist.BroadcastOptions()
    options.rootRank = root
    return options


def _first(group: Any) -> int:
    return dist.get_global_rank(group, 0)


def _sized(group: Any, me: int, size: int) -> Any:
    """This rank's own tensor is one element too long."""
    inputs = [_ones(3) for _ in range(size)]
    inputs[me] = _ones(4)
    return dist.reduce_scatter(_ones(3), inputs, group=group)


REFUSED: dict[str, Refused] = {
    "float8 sum": lambda g, me, n: dist.all_reduce(_ones().to(torch.float8_e5m2), group=g),
    "band of floats": lambda g, me, n: dist.all_reduce(_ones(), _op("BAND"), g),
    "min of complex": lambda g, me, n: dist.all_reduce(_ones(4, torch.complex64), _op("MIN"), g),
    "premul of integers": lambda g, me, n: dist.all_reduce(
        _ones(4, torch.int32), dist._make_nccl_premul_sum(0.5), g
    ),
    "avg of bools": lambda g, me, n: dist.all_reduce(_ones(4, torch.bool), _op("AVG"), g),
    "other types": lambda g, me, n: dist.all_gather(
        [_ones(4, torch.int64) for _ in range(n)], _ones(), g
    ),
    "other type of output": lambda g, me, n: dist.all_gather_into_tensor(
        _ones(4 * n, torch.int64), _ones(), g
    ),
    "meta": lambda g, me, n: _backend(g).allreduce([_meta()]),
    "meta in a list": lambda g, me, n: _backend(g).allgather(
        [[_ones(3) for _ in range(n - 1)] + [_meta()]], [_ones(3)]
    ),
    "csr": lambda g, me, n: dist.all_reduce(torch.eye(3).to_sparse_csr(), group=g),
    "root beyond": lambda g, me, n: g.broadcast([_ones()], _broadcast_options(n)),
    "root negative": lambda g, me, n: g.broadcast([_ones()], _broadcast_options(-1)),
    "no member": lambda g, me, n: dist.broadcast(_ones(), 1000, g),
    "send beyond": lambda g, me, n: g.send([_ones()], n, 0),
    "receive from beyond": lambda g, me, n: g.recv([_ones()], n, 0),
    "negative tag": lambda g, me, n: g.send([_ones()], (me + 1) % n, -1),
    "too many outputs": lambda g, me, n: dist.all_gather(
        [_ones() for _ in range(n + 1)], _ones(), g
    ),
    "no outputs": lambda g, me, n: dist.all_gather([], _ones(), g),
    "own output too long": lambda g, me, n: dist.all_gather(
        [_ones(5) for _ in range(n)], _ones(), g
    ),
    "output not a multiple": lambda g, me, n: dist.all_gather_into_tensor(
        _ones(4 * n + 1), _ones(), g
    ),
    "input not a multiple": lambda g, me, n: dist.reduce_scatter_tensor(
        _ones(), _ones(4 * n + 1), group=g
    ),
    "own input too long": _sized,
    "too many inputs": lambda g, me, n: dist.all_to_all(
        [_ones(1) for _ in range(n)], [_ones(1) for _ in range(n + 1)], g
    ),
    "splits too few": lambda g, me, n: dist.all_to_all_single(
        _ones(2 * n), _ones(2 * n), [2] * (n + 1), [2] * n, g
    ),
    "splits not the rows": lambda g, me, n: dist.all_to_all_single(
        _ones(2 * n), _ones(2 * n), [3] * n, [2] * n, g
    ),
    "splits negative": lambda g, me, n: dist.all_to_all_single(
        _ones(2 * n), _ones(2 * n), [-1] * n, [2] * n, g
    ),
    "splits of a scalar": lambda g, me, n: dist.all_to_all_single(
        torch.tensor(1.0), torch.tensor(1.0), group=g
    ),
    "expanded output": lambda g, me, n: dist.all_reduce(torch.ones(1).expand(5), group=g),
    "expanded in a list": lambda g, me, n: dist.all_gather(
        [torch.ones(1).expand(5) for _ in range(n)], _ones(5), g
    ),
    "windows": lambda g, me, n: dist.broadcast(
        torch.ones(6).as_strided((2, 4), (2, 1)), _first(g), g
    ),
    "not a tensor": lambda g, me, n: dist.all_reduce(3, group=g),
    "two tensors": lambda g, me, n: g.allreduce([_ones(), _ones()]),
    "no tensors": lambda g, me, n: g.allreduce([]),
}


def refuse(what: str, group: Any, me: int, size: int) -> str:
    """Empty if the call raised as it should."""
    try:
        REFUSED[what](group, me, size)
    except ERRORS as error:
        return "" if str(error).strip() else "raised an error without a text"
    return "did not raise"


def _add(group: Any, count: int = 8, dtype: torch.dtype = torch.float32, op: str = "SUM") -> None:
    dist.all_reduce(_ones(count, dtype), _op(op), group)


def _cast(group: Any, root: int = 0) -> None:
    group.broadcast([_ones(8)], _broadcast_options(root)).wait()


Calls = Callable[[Any], None]
# What the first rank calls, and what the others call.
MISMATCHED: dict[str, tuple[Calls, Calls]] = {
    "count": (_add, lambda g: _add(g, 9)),
    "large count": (lambda g: _add(g, 1 << 18), lambda g: _add(g, (1 << 18) + 1)),
    "small and large": (_add, lambda g: _add(g, 1 << 18)),
    "dtype": (_add, lambda g: _add(g, dtype=torch.int32)),
    "op": (_add, lambda g: _add(g, op="MAX")),
    "kind": (_add, _cast),
    "root": (_cast, lambda g: _cast(g, 1)),
    "barrier": (lambda g: dist.barrier(g), _add),
}


def mismatch(what: str, group: Any, me: int) -> str:
    """Empty if this rank heard of it, in the call or in a later one. A rank that only sends may end
    the call before that, and so may one that is let out of a barrier."""
    try:
        MISMATCHED[what][0 if me == 0 else 1](group)
        for root in (0, 1):
            _cast(group, root)
        for _ in range(2):
            dist.barrier(group)
    except RuntimeError as error:
        if "Timed out" in str(error):
            return f"was noticed by the timeout only: {error}"
        return ""
    return "ranks that disagree were not told"


THROW_AWAY_TIMEOUT = datetime.timedelta(seconds=30)
