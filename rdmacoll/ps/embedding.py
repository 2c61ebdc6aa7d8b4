"""Embedding and EmbeddingBag: modules whose rows lie at the servers.

Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from .kv import KV, ZEROS, Pending
from .optimizers import Initial, Optimizer
from .worker import DEFAULT_TIMEOUT_S

MODES = ("sum", "mean")


class _Rows(torch.autograd.Function):
    """Rows of the servers: forward pulls them, backward pushes their gradients."""

    @staticmethod
    def forward(ctx: Any, _anchor: torch.Tensor, module: _AtServers, ids: torch.Tensor) -> Any:
        ctx.module, ctx.ids = module, ids
        return module._pull(ids)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        ctx.module._push(ctx.ids, gradient)
        return None, None, None


class _AtServers(nn.Module):
    """A module without parameters: its table of rows is that of this name on all workers."""

    def __init__(
        self,
        name: str,
        dim: int,
        rows: int | None = None,
        *,
        optimizer: Optimizer | None = None,
        initial: Initial = ZEROS,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        self._kv = KV(timeout, group)
        self._kv.init_rows(name, dim, rows, optimizer, initial)
        self._name, self._dim, self._count = name, dim, rows
        self._pushed: list[Pending] = []

    def _rows(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows that these ids name, each once, and for each id which of them is its own."""
        if not isinstance(ids, torch.Tensor):
            raise TypeError(f"input is a {type(ids).__name__}; give a tensor of integers")
        if ids.is_floating_point() or ids.is_complex() or ids.dtype is torch.bool:
            raise TypeError(f"input has dtype {ids.dtype}; give integers")
        unique, places = torch.unique(ids, return_inverse=True)
        anchor = torch.empty(0, requires_grad=True)  # so that there is a backward
        rows = _Rows.apply(anchor, self, unique)
        return rows, places

    def _pull(self, ids: torch.Tensor) -> torch.Tensor:
        pulled = self._kv.row_pull(self._name, ids)
        self.wait()
        return pulled

    def _push(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        self._pushed.append(self._kv.row_push(self._name, ids, gradient.contiguous()))

    def wait(self) -> None:
        """Returns once the servers have all gradients; forward does that, too.

        Raises TimeoutError, remote.PeerError.
        """
        pushed, self._pushed = self._pushed, []
        self._kv.wait(*pushed)

    def extra_repr(self) -> str:
        return f"{self._name!r}, dim={self._dim}, rows={self._count}"


class Embedding(_AtServers):
    """As torch.nn.Embedding, with rows at the servers; arguments as of EmbeddingBag."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The row of each id."""
        rows, places = self._rows(input)
        return functional.embedding(places, rows)


class EmbeddingBag(_AtServers):
    """As torch.nn.EmbeddingBag, with rows at the servers.

    A forward pulls the rows that its batch needs, each once; the backward pushes their gradients,
    which servers apply. The next forward of this worker has them.
    """

    def __init__(
        self,
        name: str,
        dim: int,
        rows: int | None = None,
        mode: str = "mean",
        *,
        include_last_offset: bool = False,
        optimizer: Optimizer | None = None,
        initial: Initial = ZEROS,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        """name, dim, rows, optimizer, initial: as of KV.init_rows(), whose table this is.

        mode: "sum" or "mean". timeout, group, errors: as of KV().
        """
        if mode not in MODES:
            raise ValueError(f'mode={mode!r}; give "sum" or "mean"')
        super().__init__(
            name, dim, rows, optimizer=optimizer, initial=initial, timeout=timeout, group=group
        )
        self._mode, self._include_last_offset = mode, include_last_offset

    def forward(
        self,
        input: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Arguments, result and errors are torch.nn.EmbeddingBag's; besides those of KV."""
        rows, places = self._rows(input)
        return functional.embedding_bag(
            places,
            rows,
            None if offsets is None else offsets.long(),
            mode=self._mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self._include_last_offset,
        )
