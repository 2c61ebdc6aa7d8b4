"""torch.distributed.rpc over TensorPipe: once in a process, among the processes of one way."""

import warnings
from pathlib import Path

from torch.distributed import rpc

warnings.filterwarnings("ignore", "You are using a Backend")  # init_rpc itself does


def start(names: list[str], place: int, folder: str, transports: list[str] | None = None) -> None:
    """All of them call it; they meet in the folder. transports: TensorPipe's; None: it chooses."""
    store = f"file://{Path(folder, 'store')}"
    options = rpc.TensorPipeRpcBackendOptions(init_method=store, _transports=transports)
    rpc.init_rpc(names[place], rank=place, world_size=len(names), rpc_backend_options=options)
