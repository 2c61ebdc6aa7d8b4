"""torch.distributed.rpc over TensorPipe: rpc_sync of a function that copies into the tensor."""

import tempfile

import torch
from torch.distributed import rpc

from ..frame.tensorpipe import start
from .pair import Pair, Way

NAMES = ["sender", "receiver"]

_target: torch.Tensor


def _place(data: torch.Tensor) -> None:
    """Called by the sender, in the receiver's process."""
    _target.copy_(data)


class TorchRpc(Way):
    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._folder = tempfile.TemporaryDirectory(prefix="rdmacoll-bench-")
        theirs = pair.swap(self._folder.name)
        start(NAMES, 0 if pair.sends else 1, self._folder.name if pair.sends else theirs)

    def prepare(self, size_bytes: int) -> None:
        super().prepare(size_bytes)
        if not self.pair.sends:
            global _target
            _target = self.target
        self.pair.meet()

    def send(self) -> None:
        rpc.rpc_sync(NAMES[1], _place, args=(self.source,))

    def close(self) -> None:
        rpc.shutdown()
        self.pair.meet()
        self._folder.cleanup()
