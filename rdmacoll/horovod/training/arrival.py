"""The first step in a world: in which order gradients come, and which of them are sparse.

Each rank notes its own; a small sum tells all. So they cut buckets alike in the order in which
backward() comes to them, as DistributedDataParallel does, and sparse gradients stay out of buckets.
Floor: rdmacoll/horovod/training. Thread: one at a time, as its optimizer.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from rdmacoll._C import RdmaBackend

# Rows, which are added up: place from 1 on rank 0 alone; ranks that have it dense; ranks that have
# it sparse, and in how many dimensions.
ORDER, DENSE, SPARSE, SPARSE_DIMS = range(4)


class Arrival:
    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = parameters
        self._column = {p: number for number, p in enumerate(parameters)}
        self._rows = torch.zeros(4, len(parameters), dtype=torch.int64)
        self._own = self._rows
        self._count = 0
        self.work: dist.Work | None = None

    def note(self, parameter: torch.Tensor, gradient: torch.Tensor) -> None:
        """A gradient has come."""
        self._count += 1
        column = self._column[parameter]
        self._rows[ORDER, column] = self._count
        if gradient.is_sparse:
            self._rows[SPARSE, column] = 1
            self._rows[SPARSE_DIMS, column] = gradient.sparse_dim()
        else:
            self._rows[DENSE, column] = 1

    def start(self, backend: "RdmaBackend") -> None:
        """Tells all. A rank that has joined has noted nothing."""
        self._own = self._rows.clone()
        if backend.rank() != 0:
            self._rows[ORDER] = 0
        options: Any = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.SUM
        options.asyncOp = True
        torch_backend: Any = backend  # torch's stubs lack what its backends do
        self.work = torch_backend.allreduce([self._rows], options)

    # --- once that is done ------------------------------------------------------------------------

    def order(self) -> list[torch.Tensor]:
        """As on rank 0; what has not come there goes last, and so do all if it has joined."""
        place = self._rows[ORDER].tolist()
        last = len(place) + 1
        # From the back: the last that a model has are the first that backward() comes to.
        expected = reversed(self._parameters)
        return sorted(expected, key=lambda p: place[self._column[p]] or last)

    def sparse_dims(self) -> dict[torch.Tensor, int]:
        """Of those that are sparse somewhere: alike on all ranks, as they come of one operation."""
        ranks, dims = self._rows[SPARSE].tolist(), self._rows[SPARSE_DIMS].tolist()
        column = self._column
        return {p: dims[column[p]] // ranks[column[p]] for p in column if ranks[column[p]]}

    def sparse_elsewhere(self) -> list[torch.Tensor]:
        """Other ranks have given them as sparse ones, and wait for this one's."""
        missing = self._where((self._rows[SPARSE] > 0) & (self._own[SPARSE] == 0))
        return [p for p in self._parameters if p in missing]

    def mixed(self) -> set[torch.Tensor]:
        return self._where((self._rows[SPARSE] > 0) & (self._rows[DENSE] > 0))

    def _where(self, flags: torch.Tensor) -> set[torch.Tensor]:
        return {self._parameters[column] for column in flags.nonzero().flatten().tolist()}
