"""Names of an optimizer's parameters, by which ranks know which is which.

Floor: rdmacoll/horovod/training. Thread: any.
"""

from collections.abc import Iterable

import torch


def _all_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def check_named_parameters(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None,
) -> list[tuple[str, torch.Tensor]] | None:
    """Raises ValueError for what is no list of pairs, has a name twice, or lacks a parameter."""
    if named_parameters is None:
        return None
    named = list(named_parameters)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in named):
        raise ValueError(
            "named_parameters are to be pairs of a name and a parameter, as "
            "model.named_parameters() has them"
        )
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"named_parameters have names twice: {', '.join(twice)}; of several models give each "
            "name its model's, as in f'generator.{name}'"
        )
    known = {parameter for _, parameter in named}
    lacking = sum(parameter not in known for parameter in _all_of(optimizer))
    if lacking:
        raise ValueError(
            f"named_parameters lack {lacking} parameters that the optimizer updates; name all of "
            "them, or leave named_parameters out"
        )
    return named


def name_parameters(
    optimizer: torch.optim.Optimizer, named: list[tuple[str, torch.Tensor]] | None
) -> dict[torch.Tensor, str]:
    """Of each parameter of the optimizer its name, in their order."""
    if named is None:
        return {
            parameter: f"allreduce.noname.{group}.{number}"
            for group, one in enumerate(optimizer.param_groups)
            for number, parameter in enumerate(one["params"])
        }
    updated = set(_all_of(optimizer))
    return {parameter: name for name, parameter in named if parameter in updated}


def name_last_group(optimizer: torch.optim.Optimizer, names: dict[torch.Tensor, str]) -> None:
    """Of parameters that came to the optimizer later."""
    group = len(optimizer.param_groups) - 1
    for number, parameter in enumerate(optimizer.param_groups[group]["params"]):
        names[parameter] = f"allreduce.noname.{group}.{number}"
