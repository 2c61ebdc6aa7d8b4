"""What is sent in the place of a gradient: the same, or fewer bytes of it."""

from typing import Any

import torch


class Compressor:
    """Subclass it: compress() gives what is sent and what decompress() needs besides."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        raise NotImplementedError


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor


class _CastCompressor(Compressor):
    dtype: torch.dtype

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        ctx = tensor.dtype
        return (tensor.to(cls.dtype) if tensor.is_floating_point() else tensor), ctx

    @classmethod
    def decompress(cls, tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx)


class FP16Compressor(_CastCompressor):
    dtype = torch.float16


class BF16Compressor(_CastCompressor):
    dtype = torch.bfloat16


class Compression:
    """What DistributedOptimizer and allreduce take as compression."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
