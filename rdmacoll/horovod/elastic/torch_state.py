"""TorchState: models, optimizers, samplers and plain objects.

Floor: rdmacoll/horovod/elastic. Thread: the one that trains.
"""

from typing import Any

import torch

from rdmacoll.horovod.names.world import rank
from rdmacoll.horovod.training.functions import broadcast_object

from .handlers import handler_of
from .state import ObjectState


class TorchState(ObjectState):
    """Each value is an attribute, by the name that it is given.

    Values whose type has a handler (get_handler_registry()) are kept and sent by it: modules,
    optimizers, ElasticSamplers. All others are plain objects: copied deeply, and sent pickled.
    """

    def __init__(
        self,
        model: torch.nn.Module | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        **kwargs: Any,
    ) -> None:
        values = {**kwargs, "model": model, "optimizer": optimizer}
        handlers = {name: handler_of(value) for name, value in values.items()}
        self._handlers = {name: one for name, one in handlers.items() if one is not None}
        for name in self._handlers:
            super().__setattr__(name, values.pop(name))
        super().__init__(broadcast_object, rank, **values)

    def save(self) -> None:
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def __setattr__(self, name: str, value: Any) -> None:
        """Another value of a handler's takes the place of what it has, and is saved."""
        if name in self.__dict__.get("_handlers", {}):
            self._handlers[name].set_value(value)
        super().__setattr__(name, value)
