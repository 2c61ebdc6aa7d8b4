"""The maths of a step, the same for all ways: what a worker computes, and what the holder does.

All workers compute on the same parameters, and the holder takes their gradients in the order of the
workers. So what comes out is exact, in whatever order they come in.
"""

import time

import torch
from torch import nn

from .flat import bind, flattened
from .models import CLASSES, MODELS

RATE = 0.01
SEED = 1


def module_of(name: str) -> nn.Module:
    """With its first parameters, which are always the same."""
    torch.manual_seed(SEED)
    return MODELS[name].make()


class Computation:
    """Forward and backward on the batch of this worker: from the parameters to the gradients."""

    def __init__(
        self, name: str, worker: int, parameters: torch.Tensor, gradients: torch.Tensor
    ) -> None:
        model = MODELS[name]
        self._module = module_of(name)
        bind(self._module, parameters, gradients)
        self._gradients = gradients
        generator = torch.Generator().manual_seed(worker)
        self.batch = torch.randn(model.samples, *model.input_shape, generator=generator)
        self.classes = torch.randint(CLASSES, (model.samples,), generator=generator)

    def __call__(self) -> None:
        self._gradients.zero_()
        nn.functional.cross_entropy(self._module(self.batch), self.classes).backward()


class Holder:
    """The parameters, and a place for the gradients of each worker."""

    def __init__(self, name: str, parameters: torch.Tensor, gradients: list[torch.Tensor]) -> None:
        self._name = name
        self.parameters, self._gradients = parameters, gradients
        self.updates_s: list[float] = []
        self.reset()

    def reset(self) -> None:
        self.parameters.copy_(flattened(module_of(self._name)))
        self.updates_s.clear()

    def update(self) -> None:
        """SGD, once all gradients are there."""
        began = time.perf_counter()
        for gradients in self._gradients:
            self.parameters.add_(gradients, alpha=-RATE / len(self._gradients))
        self.updates_s.append(time.perf_counter() - began)


def trained_alone(name: str, workers: int, steps: int) -> torch.Tensor:
    """The parameters after so many steps in this process, where nothing is moved."""
    parameters = flattened(module_of(name))
    gradients = [torch.zeros_like(parameters) for _ in range(workers)]
    holder = Holder(name, parameters, gradients)
    computations = [
        Computation(name, worker, parameters, mine) for worker, mine in enumerate(gradients)
    ]
    for _ in range(steps):
        for compute in computations:
            compute()
        holder.update()
    return parameters
