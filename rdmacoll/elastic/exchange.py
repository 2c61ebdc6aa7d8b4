"""One rank's value to all ranks, with the tensors in it bit for bit and each in a broadcast."""

import io
import pickle
from typing import Any

import torch
import torch.distributed as dist


class _Pickler(pickle.Pickler):
    """Leaves plain tensors out and lists them."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[torch.Tensor] = []

    def persistent_id(self, value: Any) -> tuple[torch.dtype, tuple[int, ...]] | None:
        if type(value) is not torch.Tensor or not _is_plain(value):
            return None
        self.tensors.append(value.contiguous())
        return value.dtype, tuple(value.shape)


class _Unpickler(pickle.Unpickler):
    """Makes tensors of the same kinds in the same order, yet to be filled."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.tensors: list[torch.Tensor] = []

    def persistent_load(self, kind: tuple[torch.dtype, tuple[int, ...]]) -> torch.Tensor:
        dtype, shape = kind
        self.tensors.append(torch.empty(shape, dtype=dtype))
        return self.tensors[-1]


def from_rank(source: int, value: Any) -> Any:
    """`value` of the rank `source`, on all ranks of the default group; all of them call it."""
    if dist.get_rank() != source:
        return _receive(source)
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    pickled = torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
    dist.broadcast(torch.tensor([pickled.numel()]), source)
    dist.broadcast(pickled, source)
    _broadcast_all(pickler.tensors, source)
    return value


def _receive(source: int) -> Any:
    length = torch.zeros(1, dtype=torch.int64)
    dist.broadcast(length, source)
    pickled = torch.empty(int(length.item()), dtype=torch.uint8)
    dist.broadcast(pickled, source)
    unpickler = _Unpickler(io.BytesIO(pickled.numpy().tobytes()))
    value = unpickler.load()
    _broadcast_all(unpickler.tensors, source)
    return value


def _broadcast_all(tensors: list[torch.Tensor], source: int) -> None:
    for tensor in tensors:
        if tensor.numel() > 0:
            dist.broadcast(tensor.reshape(-1).view(torch.uint8), source)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Nothing but its bytes, dtype and shape; what has more to it is pickled as it is."""
    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.is_quantized or tensor.requires_grad)
        and not (tensor.is_conj() or tensor.is_neg())
    )
