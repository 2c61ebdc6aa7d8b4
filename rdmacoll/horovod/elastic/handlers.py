"""How a TorchState keeps values that are more than plain objects: a handler for each type.

Floor: rdmacoll/horovod/elastic. Thread: the one that trains.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch

from rdmacoll.horovod.training.functions import (
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)

from .sampler import ElasticSampler


class StateHandler:
    """Of one value. Who derives from it says what save(), restore() and sync() do with it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Keeps a copy of the value."""
        raise NotImplementedError

    def restore(self) -> None:
        """The value is as it was when it was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """The value is that of rank 0. All ranks call it."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Another value takes its place, and is saved."""
        self.value = value
        self.save()


class _StateDictHandler(StateHandler):
    """Of what has a state_dict()."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        # Of a copy: an optimizer keeps, and changes, the tensors that it is given.
        self.value.load_state_dict(copy.deepcopy(self._saved))


class ModelStateHandler(_StateDictHandler):
    """Of a torch.nn.Module."""

    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(_StateDictHandler):
    """Of a torch.optim.Optimizer."""

    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class SamplerStateHandler(_StateDictHandler):
    """Of an ElasticSampler, which shares out anew what is left of its epoch."""

    def sync(self) -> None:
        self.value.load_state_dict(broadcast_object(self.value.state_dict()))
        self.save()


Registry = list[tuple[type, Callable[[Any], StateHandler]]]

_registry: Registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> Registry:
    """Pairs of a type and what makes the handler of a value of it; the first that fits is taken."""
    return _registry


def set_handler_registry(registry: Registry) -> None:
    """For states that are made from now on."""
    global _registry
    _registry = registry


def handler_of(value: Any) -> StateHandler | None:
    """None: the value is a plain object."""
    for of_type, make in _registry:
        if isinstance(value, of_type):
            return make(value)
    return None
