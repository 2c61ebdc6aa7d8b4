"""Embedding and EmbeddingBag: modules whose rows lie at the servers.

Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from .base.modes import Async, Mode
from .base.optimizers import Initial, Optimizer
from .base.rates import checked, with_lr
from .base.staging import is_staged, to_host
from .kv import KV, ZEROS
from .row_steps import check_pace, steps_of
from .worker import DEFAULT_TIMEOUT_S

ASYNC = Async()
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
        host = to_host(gradient) if is_staged(gradient) else gradient.contiguous()
        ctx.module._steps.add(ctx.ids.cpu(), host)
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
        pace: Mode = ASYNC,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        check_pace(pace)
        self._kv = KV(timeout, group)
        self._kv.init_rows(name, dim, rows, optimizer, initial)
        self._steps = steps_of(self._kv, name, dim, pace, group)
        self._name, self._dim, self._count, self._pace = name, dim, rows, pace
        self._optimizer = optimizer

    @property
    def lr(self) -> float | None:
        """The rate of the gradients that this worker's next backwards bring; None: that of the
        optimizer as it was made. With Sync each row is pushed by one of the workers, with its rate:
        set the same on all. Setting it raises TypeError, and ValueError for what the optimizer does
        not take."""
        return self._steps.lr

    @lr.setter
    def lr(self, lr: float | None) -> None:
        checked(self._optimizer, with_lr(lr), self._name)
        self._steps.lr = lr

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
        self._steps.before_pull()
        out = torch.empty(len(ids), self._dim, device=ids.device)
        pulled = self._kv.row_pull(self._name, ids, out)
        self._steps.wait()
        return pulled

    def wait(self) -> None:
        """Returns once the servers have all gradients; forward does that, too.

        With Sync and Stale it ends this worker's step where a backward has come since the last one,
        and waits for others as the pace says. Raises TimeoutError, which names who is late, and
        after which it may be called again; DeadRankError, when one of them is gone;
        remote.PeerError.
        """
        self._steps.wait()

    def skip(self) -> None:
        """A step of this worker without a batch, where others have one; else as wait().

        With Sync the others' mean has zeros of this worker then. With Async it is wait().
        """
        self._steps.skip()

    def extra_repr(self) -> str:
        return f"{self._name!r}, dim={self._dim}, rows={self._count}, pace={self._pace}"


class Embedding(_AtServers):
    """As torch.nn.Embedding, with rows at the servers; arguments as of EmbeddingBag."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The row of each id."""
        rows, places = self._rows(input)
        return functional.embedding(places, rows)


class EmbeddingBag(_AtServers):
    """As torch.nn.EmbeddingBag, with rows at the servers.

    A forward pulls the rows that its batch needs, each once; the backward has their gradients
    pushed, which servers apply. The next forward of this worker has them.
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
        pace: Mode = ASYNC,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        """name, dim, rows, optimizer, initial: as of KV.init_rows(), whose table this is.

        mode: "sum" or "mean", of the rows of a bag. pace: how workers wait for each other: Async(),
        Sync() or Stale(n) of rdmacoll.ps, the same on all; in the last two all ranks of the group
        take part. timeout: of each wait, in seconds. group, errors: as of KV(). Besides raises
        TypeError, and ValueError where the first worker has given another pace.
        """
        if mode not in MODES:
            raise ValueError(f'mode={mode!r}; give "sum" or "mean"')
        super().__init__(
            name,
            dim,
            rows,
            optimizer=optimizer,
            initial=initial,
            pace=pace,
            timeout=timeout,
            group=group,
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
