"""SyncBatchNorm: batch normalization over the batches of all ranks, by one allreduce each way.

Floor: rdmacoll/horovod/training. Thread: that of forward and backward.
"""

from typing import Any

import torch
from torch.autograd import Function
from torch.nn.modules.batchnorm import _BatchNorm

from rdmacoll.horovod.names import ops
from rdmacoll.horovod.names.handles import synchronize
from rdmacoll.horovod.names.operations import allreduce_async_
from rdmacoll.horovod.names.world import size


def _per_channel(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return values.reshape(1, -1, *[1] * (like.dim() - 2))


def _summed(values: list[torch.Tensor], name: str) -> list[torch.Tensor]:
    """Of all ranks, as doubles."""
    flat = torch.cat([value.double().flatten() for value in values])
    synchronize(allreduce_async_(flat, op=ops.Sum, name=name))
    parts = torch.split(flat, [value.numel() for value in values])
    return list(parts)


class _Normalize(Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: Any, bias: Any, eps: float, name: str
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        over = [0, *range(2, x.dim())]
        rows = torch.tensor([float(x.numel() // x.shape[1])])
        wide = x.double()
        sums, squares, count = _summed([wide.sum(over), (wide * wide).sum(over), rows], name)
        mean = sums / count
        variance = squares / count - mean * mean
        scale = torch.rsqrt(variance + eps)
        normal = ((wide - _per_channel(mean, x)) * _per_channel(scale, x)).to(x.dtype)
        ctx.save_for_backward(normal, weight, scale.to(x.dtype), count)
        ctx.name = name
        y = normal
        if weight is not None:
            y = y * _per_channel(weight, x)
        if bias is not None:
            y = y + _per_channel(bias, x)
        ctx.mark_non_differentiable(mean, variance, count)
        return y, mean, variance, count

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        normal, weight, scale, count = ctx.saved_tensors
        of_y = gradients[0]
        over = [0, *range(2, of_y.dim())]
        of_bias = of_y.sum(over)
        of_weight = (of_y * normal).sum(over)
        sums, products = _summed([of_bias, of_weight], f"{ctx.name}.backward")
        inner = (
            of_y
            - _per_channel((sums / count).to(of_y.dtype), of_y)
            - normal * _per_channel((products / count).to(of_y.dtype), of_y)
        )
        factor = scale if weight is None else scale * weight
        of_x = inner * _per_channel(factor, of_y)
        has_weight = weight is not None
        return of_x, of_weight if has_weight else None, of_bias if has_weight else None, None, None


class SyncBatchNorm(_BatchNorm):
    """As torch.nn.BatchNorm1d and the like, with the mean and variance of all ranks' batches.

    While it is trained and there are several ranks; else it is an ordinary one. All ranks come to
    it equally often.
    """

    _made = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = f"sync_batch_norm.{SyncBatchNorm._made}"
        SyncBatchNorm._made += 1

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm: input has {input.dim()} dimensions; give 2 or more")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not (self.training or not self.track_running_stats) or size() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        y, mean, variance, count = _Normalize.apply(
            input, self.weight, self.bias, self.eps, self._name
        )
        if self.training and self.track_running_stats:
            self._track(mean, variance * count / (count - 1).clamp(min=1))
        result: torch.Tensor = y
        return result

    @torch.no_grad()
    def _track(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        assert self.num_batches_tracked is not None
        assert self.running_mean is not None and self.running_var is not None
        self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:
            share = 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(variance.to(self.running_var.dtype), share)
