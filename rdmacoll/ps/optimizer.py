"""Optimizer: in the place of a torch optimizer, for parameters that lie at the servers.

Floor: rdmacoll/ps. Thread: the one that trains.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist

from .base.modes import Async, Mode, Sync
from .base.optimizers import SGD, Adagrad, Adam, AdamW, to_engine
from .base.optimizers import Optimizer as Rule
from .base.pending import Pending, finish
from .base.rates import changed
from .board import LAYOUT
from .clock import join_steps
from .flat import Flat
from .in_step import InStep
from .kv import KV, Pace
from .worker import DEFAULT_TIMEOUT_S

ASYNC = Async()
RULES: dict[type, type[SGD] | type[Adagrad] | type[Adam] | type[AdamW]] = {
    torch.optim.SGD: SGD,
    torch.optim.Adagrad: Adagrad,
    torch.optim.Adam: Adam,
    torch.optim.AdamW: AdamW,
}
HOW = ("foreach", "fused", "capturable")  # torch computes it; the result is the same
REFUSED = {
    "amsgrad": "leave it out",
    "decoupled_weight_decay": "take AdamW",
    "differentiable": "leave it out",
}


class Optimizer(torch.optim.Optimizer):
    """Trains parameters that lie at the servers, with a torch optimizer's face.

        optimizer = ps.Optimizer(model.parameters(), torch.optim.Adam, lr=1e-3)

    `step` pushes the gradients, which servers apply, and pulls the parameters. Each group of
    parameters is one dense table, of the name "{name}/{number of the group}"; all workers begin
    with the values of the first one that made it.
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer: Rule | type[torch.optim.Optimizer],
        mode: Mode = ASYNC,
        name: str = "model",
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        """params: as torch takes them: float32, on the CPU; a group may have hyperparameters.

        optimizer: ps.SGD, Adagrad, Adam or AdamW; or torch.optim's class of one of these, with its
        arguments as options. Of these foreach, fused and capturable change nothing. mode: Async(),
        Sync() or Stale(n) of rdmacoll.ps; in the last two all ranks of the group take part.
        timeout: of each step, in seconds. group, errors: as of ps.connect(). Besides raises
        TypeError for a parameter that servers cannot hold, NotImplementedError for what they do not
        do, and ValueError where the first worker had other parameters, or another optimizer of this
        process and group has that name, and other parameters.
        """
        if not isinstance(mode, Mode):
            what = mode.__name__ if isinstance(mode, type) else type(mode).__name__
            raise TypeError(f"mode is {what}; give ps.Async(), ps.Sync() or ps.Stale(n)")
        rule = rule_of(optimizer, options)
        self._tables: list[Flat] = []
        self._pushed: list[Pending] = []  # whose gradients servers read
        self._pulled: list[Pending] = []  # which write to parameters
        super().__init__(params, dataclasses.asdict(rule))
        tables = []
        for number, of_group in enumerate(self.param_groups):
            refuse(of_group)
            to_engine(_with(rule, of_group))
            table = f"{name}/{number}"
            tables.append(Flat(table, of_group, _with(rule, of_group)))
        self._kv = KV(timeout, group)
        self._name, self._group = name, group
        if group is None and dist.is_initialized():
            self._group = dist.group.WORLD
        self._refuse_namesake()
        if not isinstance(mode, Async):
            self._kv._worker.check_rank(f"mode={mode}", "ps.Async()")
        layout = repr([flat.layout for flat in tables])
        if self._kv._worker.board.first_word(LAYOUT, name, layout) != layout:
            raise ValueError(
                f"the worker that was first to make the optimizer {name!r} has other parameters: "
                "make it of the same model on all, or give it another name"
            )
        for flat in tables:
            flat.use_room(self._kv.empty(flat.values.numel()))
            pace = None
            if not isinstance(mode, Async) and flat.trained > 0:
                pace = Pace(flat.trained, isinstance(mode, Sync))
            self._kv._init_paced(flat.table, flat.gather(), flat.rule, pace)
        self._tables = tables
        self._pull()
        self._in_step = None
        if not isinstance(mode, Async):
            trained = [flat for flat in tables if flat.trained > 0]
            member = join_steps(self._kv, name, [flat.table for flat in trained], group)
            self._in_step = InStep(self._kv, name, trained, mode, member)
        self._kv._worker.copies.add(self)

    def _refuse_namesake(self) -> None:
        """Two models of the same shapes would be one at the servers."""
        at = self._kv._worker
        for other in list(at.copies):
            if other._name != self._name or other._group is not self._group:
                continue
            if other._is_over():
                at.copies.discard(other)
            elif other._trains() != self._trains():
                raise ValueError(
                    f"name={self._name!r} is that of another optimizer of this process, with other "
                    "parameters; give this one a name of its own, or end that one's tables first, "
                    f"by KV().drop({self._name!r})"
                )

    def _is_over(self) -> bool:
        """Whether its tables were dropped, or fewer or more workers go in step in them now."""
        at = self._kv._worker
        at.forget_dropped()
        is_dropped = not any(flat.table in at.tables for flat in self._tables)
        return is_dropped or (self._in_step is not None and self._in_step.is_over())

    def _trains(self) -> list[int]:
        """Which tensors."""
        return [id(parameter) for group in self.param_groups for parameter in group["params"]]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Pushes the gradients, and gives the parameters the values that servers have then.

        A parameter without a gradient is not pushed, as torch does; but for what counts steps
        (docs/PARAMETER_SERVER.md) all of a group have one, or none has, and where workers wait for
        each other all have one. closure: as torch has it;
        what it returns is returned. Raises ValueError, before anything moves, also where another
        hyperparameter was changed than schedules change; TimeoutError, remote.PeerError; where
        workers wait for each other DeadRankError, when one of them is gone.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for flat, of_group in zip(self._tables, self.param_groups, strict=True):
            flat.rates = changed(flat.rule, _with(flat.rule, of_group), flat.table)
        if self._in_step is not None:
            self._in_step.step()
            return loss
        self._finish()  # a step that was not seen to end; servers read its gradients
        ranges = [(flat, *run) for flat in self._tables for run in flat.gather_gradients()]
        for flat, first, end in ranges:
            self._pushed.append(
                self._kv._push(flat.table, first, flat.gradients[first:end], flat.rates)
            )
        self._pull()
        return loss

    def _finish(self) -> None:
        finish(self._pushed)
        finish(self._pulled)

    def _pull(self) -> None:
        finish(self._pulled)
        for flat in self._tables:
            for first, out in flat.landings(flat.values.numel()):
                self._pulled.append(self._kv._pull_step(flat.table, out, 0, first))
        self._finish()
        for flat in self._tables:
            flat.scatter()

    def state_dict(self) -> dict[str, Any]:
        """Raises NotImplementedError: the state is at the servers."""
        raise NotImplementedError(
            "this optimizer's state is at the servers; ps.snapshot() writes it, with the parameters"
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raises NotImplementedError: the state is at the servers."""
        raise NotImplementedError(
            "this optimizer's state is at the servers; ps.restore() gives them what ps.snapshot() "
            "has written"
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Raises NotImplementedError once the optimizer is made: all workers share its tables."""
        if self._tables:
            raise NotImplementedError(
                "all workers share the tables that this optimizer was made with; make another "
                "ps.Optimizer, of another name, for more parameters"
            )
        super().add_param_group(param_group)


def rule_of(optimizer: Any, options: dict[str, Any]) -> Rule:
    """What servers apply. Raises TypeError, NotImplementedError."""
    if isinstance(optimizer, Rule):
        if options:
            raise TypeError(
                f"{', '.join(options)}: give them to {type(optimizer).__name__}() itself"
            )
        return optimizer
    if optimizer not in RULES:
        what = optimizer.__name__ if isinstance(optimizer, type) else type(optimizer).__name__
        raise TypeError(
            f"optimizer is {what}; give one of rdmacoll.ps, as ps.Adam(lr=1e-3), or the class "
            "torch.optim.SGD, Adagrad, Adam or AdamW with its arguments"
        )
    refuse(options)
    known = inspect.signature(optimizer).parameters
    taken = {}
    for key, value in options.items():
        if key not in known:
            raise TypeError(f"{key} is no argument of torch.optim.{optimizer.__name__}")
        if isinstance(value, torch.Tensor):
            raise TypeError(f"{key} is a tensor; servers take numbers: give its item()")
        if key not in HOW and key not in REFUSED:
            taken[key] = value
    return RULES[optimizer](**taken)


def refuse(options: dict[str, Any]) -> None:
    for key, remedy in REFUSED.items():
        if options.get(key):
            raise NotImplementedError(f"servers do not do {key}={options[key]!r}; {remedy}")


def _with(rule: Rule, group: dict[str, Any]) -> Rule:
    return dataclasses.replace(rule, **{name: group[name] for name in vars(rule)})
