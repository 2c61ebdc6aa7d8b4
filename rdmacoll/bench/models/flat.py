"""A model's parameters in one tensor, and its gradients in another: each moves as a whole."""

from dataclasses import dataclass

import torch
from torch import nn

ALIGNED = 16  # elements: kernels are quickest where vectors begin with a line of the cache


@dataclass(frozen=True)
class Layout:
    """Where each parameter begins, and how many elements there are of all, gaps included."""

    firsts: list[int]
    elements: int


def layout_of(module: nn.Module) -> Layout:
    firsts, end = [], 0
    for parameter in module.parameters():
        firsts.append(end)
        end += -(-parameter.numel() // ALIGNED) * ALIGNED
    return Layout(firsts, end)


def flattened(module: nn.Module) -> torch.Tensor:
    """The parameters as they are; zeros in the gaps."""
    layout = layout_of(module)
    flat = torch.zeros(layout.elements)
    for first, parameter in zip(layout.firsts, module.parameters(), strict=True):
        flat[first : first + parameter.numel()] = parameter.detach().flatten()
    return flat


def bind(module: nn.Module, parameters: torch.Tensor, gradients: torch.Tensor) -> None:
    """Has the module take its parameters from the one tensor, and add gradients to the other."""
    layout = layout_of(module)
    for first, parameter in zip(layout.firsts, module.parameters(), strict=True):
        place = slice(first, first + parameter.numel())
        parameter.data = parameters[place].view(parameter.shape)
        parameter.grad = gradients[place].view(parameter.shape)
