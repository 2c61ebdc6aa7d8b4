"""plan(): what crosses a cut of a data-flow graph is placed at its receiver before anything runs.

The walk is in graph.py, the memory and what moves there in slots.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.export import ExportedProgram
from torch.fx import GraphModule

from rdmacoll.base.byte_sizes import text_of_size

from ..memory.checks import check_name, check_timeout
from ..memory.opening import DEFAULT_TIMEOUT_S
from .graph import Crossing, Cut, crossings, stage_module
from .slots import SlotLayout
from .transfers import Receiver, Sender, check_kind, check_names, check_value

Stages = tuple[int, int]


class Plan:
    """What crosses the cuts of a program. As plan() makes it; print it for the report.

    crossing: all that does, in the order in which it is made. stages: of each node, by its name.
    """

    def __init__(
        self, module: GraphModule, crossing: tuple[Crossing, ...], stages: dict[str, int]
    ) -> None:
        self.crossing = crossing
        self.stages = stages
        self._module = module

    def stage(self, number: int) -> GraphModule:
        """The module of one stage, with the program's parameters.

        It takes by name what comes into the stage, as receive() returns it, and those of the
        program's inputs that are in it. It returns a dict: what send() takes, and what of it the
        program returns, by the names of their nodes. Raises ValueError for a stage without nodes.
        """
        if number not in self.stages.values():
            raise ValueError(f"number={number} is no stage; there are {set(self.stages.values())}")
        return stage_module(self._module, self.crossing, self.stages, number)

    @property
    def pairs(self) -> list[Stages]:
        """The stages between which anything goes: (made in, used in)."""
        return sorted({(one.stage, used) for one in self.crossing for used in one.used_in})

    def between(self, stages: Stages | None = None) -> tuple[Crossing, ...]:
        """What is made in the first of two stages and used in the second.

        stages: None, if only two have anything to do with each other. Raises ValueError for others.
        """
        if stages is None and len(self.pairs) == 1:
            stages = self.pairs[0]
        if stages not in self.pairs:
            known = ", ".join(map(str, self.pairs)) or "none, as nothing crosses the cut"
            raise ValueError(f"stages={stages} have nothing between them; there are: {known}")
        made, used = stages
        return tuple(one for one in self.crossing if one.stage == made and used in one.used_in)

    def sender(
        self,
        name: str,
        to: int | None = None,
        at: str | None = None,
        stages: Stages | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
    ) -> PlannedSender:
        """The end of the process that runs the first of two stages; waits for receiver() there.

        name: of this transfer, alike on both sides. to, at: the other process, as on= and at= of
        remote.open(). stages: as between(). timeout: in seconds. group: by which it is reached.
        A process that makes several ends makes them in the order in which the others do.
        Raises ValueError for a name that is taken and for another plan at the receiver,
        NotImplementedError for values that are no tensors and no numbers, TimeoutError, PeerError.
        """
        check_name(name)
        check_timeout(timeout)
        return PlannedSender(name, self._sendable(stages), to, at, timeout, group)

    def receiver(
        self,
        name: str,
        of: int | None = None,
        at: str | None = None,
        stages: Stages | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
    ) -> PlannedReceiver:
        """The end of the process that runs the second of two stages; waits for sender() there.

        It allocates two slots for all that can be placed. As sender(), of: the other process.
        """
        check_name(name)
        check_timeout(timeout)
        return PlannedReceiver(name, self._sendable(stages), of, at, timeout, group)

    def _sendable(self, stages: Stages | None) -> tuple[Crossing, ...]:
        items = self.between(stages)
        if neither := [one for one in items if one.dtype is None and not one.is_number]:
            what = ", ".join(f"{one.name} ({one.why_dynamic})" for one in neither)
            raise NotImplementedError(
                f"only tensors and numbers go from stage to stage, and not {what}; cut elsewhere"
            )
        return items

    def __str__(self) -> str:
        rows = [("value", "stages", "shape", "dtype", "how it goes"), *map(_row, self.crossing)]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]])
            for row in rows
        ]
        static = [one for one in self.crossing if one.is_static]
        iteration = sum(one.kind.bytes * len(one.used_in) for one in static)
        memory = sum(_layout(self.between(pair)).bytes for pair in self.pairs)
        lines.append(
            f"{len(static)} of {len(self.crossing)} placed: {text_of_size(iteration)} in each "
            f"iteration, for which the receivers take {text_of_size(memory)}"
        )
        return "\n".join(lines)


class PlannedSender(Sender):
    """Sends what one stage makes and another uses. As Plan.sender() makes it."""

    def __init__(
        self,
        name: str,
        items: tuple[Crossing, ...],
        to: int | None,
        at: str | None,
        timeout: float,
        group: dist.ProcessGroup | None,
    ) -> None:
        super().__init__(name, to, at, group)
        self._items = {one.name: one for one in items}
        try:
            self._slots.open(_layout(items), to, at, time.monotonic() + timeout)
        except BaseException:
            self.close(timeout)
            raise

    def send(self, values: Mapping[str, Any], timeout: float = DEFAULT_TIMEOUT_S) -> None:
        """Sends an iteration: a value for each name of what crosses; values of other names do not
        go. They may be changed after it.

        It waits while the receiver has two iterations that it has not given back. timeout: in
        seconds. Raises ValueError for missing names, other shapes and dtypes, before anything
        moves; TimeoutError, after which it can be called again if it was for want of a slot;
        PeerError, RevokedError.
        """
        self._check(timeout)
        check_names(values, self._items)
        placed, mailed = {}, []
        for name, one in self._items.items():
            if one.is_static:
                check_value(name, values[name])
                check_kind(name, values[name], one.kind)
                placed[name] = values[name]
            else:
                mailed.append(_as_tensor(one, values[name]))
        self._send(placed, mailed, time.monotonic() + timeout)
        self._mailed += len(mailed)


class PlannedReceiver(Receiver):
    """Receives what one stage makes and another uses. As Plan.receiver() makes it."""

    def __init__(
        self,
        name: str,
        items: tuple[Crossing, ...],
        of: int | None,
        at: str | None,
        timeout: float,
        group: dist.ProcessGroup | None,
    ) -> None:
        super().__init__(name, _layout(items), of, at, timeout, group)
        self._items = items

    def receive(self, timeout: float = DEFAULT_TIMEOUT_S) -> dict[str, Any]:
        """The next iteration's values by name: where they were placed, in views, not in copies.

        Views hold until the next receive(), which gives their memory back to the sender; clone()
        what is needed for longer. The sender is up to two iterations ahead. timeout: in seconds.
        Raises TimeoutError if nothing came in time, and can be called again; PeerError,
        RevokedError.
        """
        self._check(timeout)
        end = time.monotonic() + timeout
        views, _ = self._slots.receive(end)
        values: dict[str, Any] = {}
        with self._whole():
            for one in self._items:
                values[one.name] = views[one.name] if one.is_static else self._take(end)
                if one.is_number:
                    values[one.name] = values[one.name].item()
                self._mailed += not one.is_static
        return values


def _layout(items: tuple[Crossing, ...]) -> SlotLayout:
    mailed = [one.name for one in items if not one.is_static]
    return SlotLayout({one.name: one.kind for one in items if one.is_static}, mailed)


def _as_tensor(one: Crossing, value: Any) -> torch.Tensor:
    """Of a value that is dynamic."""
    if one.is_number:
        if not isinstance(value, int | float):
            raise TypeError(f"values[{one.name!r}] is a {type(value).__name__}; give a number")
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    check_value(one.name, value)
    assert one.shape is not None
    fits = len(one.shape) == value.ndim and all(
        known == n for known, n in zip(one.shape, value.shape, strict=True) if type(known) is int
    )
    if not fits or value.dtype != one.dtype:
        raise ValueError(
            f"values[{one.name!r}] has shape {tuple(value.shape)} and dtype {value.dtype}; the "
            f"graph says {one.shape} and {one.dtype}"
        )
    return value


def _row(one: Crossing) -> tuple[str, ...]:
    used = ", ".join(map(str, one.used_in))
    shape = "" if one.shape is None else f"({', '.join(map(str, one.shape))})"
    dtype = "" if one.dtype is None else str(one.dtype).removeprefix("torch.")
    how = "placed" if one.is_static else f"by mailbox: {one.why_dynamic}"
    return one.name, f"{one.stage} to {used}", shape, dtype, how


def plan(
    program: ExportedProgram | GraphModule,
    cut: Cut,
    example_inputs: Sequence[Any] | None = None,
) -> Plan:
    """Walks a program's graph and tells what crosses the cut, and what of that can be placed.

    program: what torch.export.export() or torch.fx.symbolic_trace() returns. cut: the name of a
    submodule or a node after which the graph is cut, or several names; or a function that gives
    the number of the stage of each torch.fx.Node. Numbers grow along the data; a process may run
    several stages. Inputs of the program are nodes of stage 0, unless the function says otherwise.
    example_inputs: the program's arguments, if its nodes have no shapes yet: it is run on them
    without data. Any thread; needs no process group.
    Raises TypeError for another program, and ValueError for a name that is not in the graph, for a
    value that would go to an earlier stage, and for one of which no shape is known.
    """
    if isinstance(program, ExportedProgram):
        module = program.module(check_guards=False)
    elif isinstance(program, GraphModule):
        module = program
    else:
        raise TypeError(
            f"program is a {type(program).__name__}; give what torch.export.export() or "
            "torch.fx.symbolic_trace() returns"
        )
    return Plan(module, *crossings(module, cut, example_inputs))
