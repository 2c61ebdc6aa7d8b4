"""torch.distributed.rpc over TensorPipe: rpc_sync of functions that return the parameters, and that
copy the gradients to their place.
"""

import tempfile
from collections.abc import Callable

import torch
from torch.distributed import rpc

from ..frame.tensorpipe import start
from .gathering import Gathering
from .team import Team, Way

HOLDER = "holder"
# That of shared memory, which TensorPipe would take, polls on half a core also while nothing is to
# be done, and so in the turns of all others. What it carries is small; tensors go by a channel.
TRANSPORTS = ["uv"]

_gathering: Gathering


def _parameters() -> torch.Tensor:
    """Called by workers, in the holder's process."""
    return _gathering.parameters


def _hand_in(worker: int, gradients: torch.Tensor) -> None:
    """As _parameters()."""
    _gathering.gradients[worker].copy_(gradients)
    _gathering.step()


class TorchRpc(Way):
    def __init__(self, team: Team) -> None:
        super().__init__(team)
        self._folder = tempfile.TemporaryDirectory(prefix="rdmacoll-bench-")
        names = [HOLDER, *(f"worker-{n}" for n in range(team.workers))]
        start(names, team.place, team.tell(0, self._folder.name), TRANSPORTS)

    def prepare(self, elements: int, update: Callable[[], None]) -> None:
        super().prepare(elements, update)
        if self.team.holds:
            global _gathering
            _gathering = Gathering(self.parameters, self.gradients, update)
        self.team.meet()

    def pull(self) -> None:
        self.parameters.copy_(rpc.rpc_sync(HOLDER, _parameters))

    def push(self) -> None:
        rpc.rpc_sync(HOLDER, _hand_in, args=(self.team.worker, self.gradients[0]))

    def close(self) -> None:
        rpc.shutdown()
        self.team.meet()
        self._folder.cleanup()
