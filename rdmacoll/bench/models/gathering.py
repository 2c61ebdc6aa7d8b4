"""The holder's side of an RPC: calls of all workers come in, and the last one makes the step."""

import threading
from collections.abc import Callable

import torch

from ..frame.job import STEP_TIMEOUT_S


class Gathering:
    """Each worker's call is in a thread of its own, so that they can wait for each other."""

    def __init__(
        self,
        parameters: torch.Tensor,
        gradients: list[torch.Tensor],
        update: Callable[[], None],
    ) -> None:
        self.parameters, self.gradients = parameters, gradients
        self._step = threading.Barrier(len(gradients), update, STEP_TIMEOUT_S)

    def step(self) -> None:
        """This worker's gradients are there; returns once the step is made."""
        self._step.wait()
