"""Plants mistakes into every second blocking all_reduce, to see that programs find them."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import torch.distributed as dist

MISTAKES = ("", "flip", "drop", "delay", "hang")

_EVERY = 2
_LATE_S = 0.05
_FOR_EVER_S = 1000.0


def plant(mistake: str) -> None:
    if mistake:
        _Planted(mistake, dist.all_reduce).put_in()


class _Planted:
    """Takes the place of dist.all_reduce on the last rank."""

    def __init__(self, mistake: str, true_call: Any) -> None:
        self._mistake = mistake
        self._true_call = true_call
        self._calls = 0

    def put_in(self) -> None:
        if int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1:
            setattr(dist, "all_reduce", self)  # noqa: B010

    def __call__(
        self, tensor: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        self._calls += 1
        if self._calls % _EVERY or async_op or tensor.is_sparse or tensor.numel() == 0:
            return self._true_call(tensor, op, group, async_op)
        if self._mistake == "drop":
            return None
        if self._mistake == "hang":
            time.sleep(_FOR_EVER_S)
        if self._mistake == "delay":
            threading.Thread(target=self._late, args=(tensor, op, group)).start()
            return None
        self._true_call(tensor, op, group)
        first = tensor[(0,) * tensor.dim()]
        first.fill_(1 - first.item())
        return None

    def _late(self, *arguments: Any) -> None:
        time.sleep(_LATE_S)
        self._true_call(*arguments)
