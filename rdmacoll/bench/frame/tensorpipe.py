"""torch.distributed.rpc over TensorPipe: once in a process, among the processes of one way."""

import warnings
from pathlib import Path

from torch.distributed import rpc

warnings.filterwarnings("ignore", "You are using a Backend")  # init_rpc itself does


def start(names: list[str], place: int, folder: str) -> None:
    """All of them call it; they meet in the folder."""
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{Path(folder, 'store')}")
    rpc.init_rpc(names[place], rank=place, world_size=len(names), rpc_backend_options=options)
