"""Adasum: tensors added so that what they have in common counts once. torch_ext/order/adasum.h says
how; here is what it can be asked for.

Floor: rdmacoll/horovod/names. Thread: any.
"""

import torch

from .process_sets import ProcessSet


def check(process_set: ProcessSet, tensors: list[torch.Tensor]) -> None:
    ranks = process_set.size()
    if ranks & (ranks - 1):
        raise NotImplementedError(
            f"op=hvd.Adasum over {ranks} ranks; their number must be a power of two"
        )
    for tensor in tensors:
        if not tensor.is_floating_point():
            raise ValueError(f"op=hvd.Adasum of {tensor.dtype}; give floating-point tensors")
