"""torch.distributed.rpc over TensorPipe: rpc_sync of a function that copies into the tensor."""

import tempfile
import warnings
from pathlib import Path

import torch
from torch.distributed import rpc

from .pair import Pair, Way

NAMES = ("sender", "receiver")

warnings.filterwarnings("ignore", "You are using a Backend")  # init_rpc itself does

_target: torch.Tensor


def _place(data: torch.Tensor) -> None:
    """Called by the sender, in the receiver's process."""
    _target.copy_(data)


class TorchRpc(Way):
    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._folder = tempfile.TemporaryDirectory(prefix="rdmacoll-bench-")
        theirs = pair.swap(self._folder.name)
        where = Path(self._folder.name if pair.sends else theirs, "store")
        options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{where}")
        rank = 0 if pair.sends else 1
        rpc.init_rpc(NAMES[rank], rank=rank, world_size=2, rpc_backend_options=options)

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
