"""An optimizer of Adasum: each rank steps by its own gradients, and what the steps have changed is
added by Adasum. So momentum and the like are each rank's own.

Floor: rdmacoll/horovod/training. Thread: one at a time.
"""

from typing import Any

import torch

from rdmacoll.horovod.names import adasum, ops
from rdmacoll.horovod.names.compression import Compressor
from rdmacoll.horovod.names.handles import synchronize
from rdmacoll.horovod.names.operations import start_allreduce
from rdmacoll.horovod.names.process_sets import ProcessSet, global_process_set

from .named import name_last_group


class AdasumMixin(torch.optim.Optimizer):
    """What it does besides its optimizer, which is the next class in its order."""

    def _begin(
        self,
        names: dict[torch.Tensor, str],
        compression: type[Compressor],
        backward_passes_per_step: int,
        process_set: ProcessSet,
    ) -> None:
        if process_set is not global_process_set:
            raise NotImplementedError("op=hvd.Adasum over a process set; leave process_set out")
        adasum.check(process_set, [p for p in names if p.requires_grad])
        self._parameter_names = names
        self._compression = compression
        self._process_set = process_set
        self.backward_passes_per_step = backward_passes_per_step

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """All ranks add alike."""
        super().add_param_group(param_group)
        name_last_group(self, self._parameter_names)
        adasum.check(self._process_set, self.param_groups[-1]["params"])

    def synchronize(self) -> None:
        """Nothing: step() adds what it has changed."""

    def skip_synchronize(self) -> Any:
        raise AssertionError(
            "skip_synchronize() means nothing with op=hvd.Adasum: step() reduces what it has "
            "changed, not gradients"
        )

    def set_backward_passes_per_step(self, passes: int) -> None:
        """So many backward passes are added up before step(), which the caller sees to."""
        self.backward_passes_per_step = passes

    def step(self, closure: Any = None) -> Any:
        """Steps, and adds what that has changed on all ranks."""
        trained = [p for p in self._parameter_names if p.requires_grad]
        before = [p.detach().clone() for p in trained]
        loss = super().step(closure)
        sent, contexts = [], []
        for parameter, old in zip(trained, before, strict=True):
            delta, ctx = self._compression.compress(parameter.detach() - old)
            sent.append(delta)
            contexts.append(ctx)
        handle = start_allreduce(
            sent, ops.Adasum, "adasum.delta", 1.0, 1.0, self._process_set, lambda _: None
        )
        synchronize(handle)
        with torch.no_grad():
            for parameter, old, delta, ctx in zip(trained, before, sent, contexts, strict=True):
                parameter.copy_(old + self._compression.decompress(delta, ctx))
        return loss
