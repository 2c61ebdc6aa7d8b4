"""Runs one operation on one rank: binds its tensors, starts it, ends it and checks it.

Not here: when and in which thread that happens (rank.py).
"""

from __future__ import annotations

from typing import Any

import aliases
import calls
import expect
import messages
import torch
import values
from aliases import Bound
from memory import Buffer
from program import IN_PLACE, Op, Part
from torch import Tensor
from waits import WAITS, Waiter

_JUNK = 0x5A


class Shared:
    """Inputs that several operations read, maybe at once."""

    def __init__(self) -> None:
        self._buffers: dict[object, Buffer] = {}

    def input(self, op: Op, me: int) -> Buffer:
        key = (op.group.ranks[me], op.data, op.dtype, op.dims)
        if key not in self._buffers:
            self._buffers[key] = _inputs(op, me, op.parts[me])[0]
        return self._buffers[key]


def start(op: Op, group: Any, me: int, shared: Shared) -> messages.Ending:
    if op.kind in messages.KINDS:
        return messages.start(op, group, me)
    part = op.parts[me]
    bound = bind(op, me, part, shared)
    blocks = part.mode == "block"
    work = calls.CALLS[op.kind](op, group, bound.ins, bound.outs, not blocks)
    works = work if isinstance(work, list) else [work]
    del work
    if part.mode == "drop":
        sizes = [tensor.nbytes for tensor in (*bound.ins, *bound.outs)]
        del works, bound
        return _untouched(sizes)
    wait: Waiter | None = None
    if not blocks:
        wait = WAITS["wait" if op.kind in calls.ONLY_WAITED_FOR else part.mode](works)
    if part.forget and not blocks:
        _forget_inputs(bound)
    if part.reset and not blocks:
        for tensor in bound.outs:
            tensor.set_(torch.UntypedStorage())

    def end() -> list[str]:
        if wait is not None:
            wait()
        return check(bound)

    return end


def bind(op: Op, me: int, part: Part, shared: Shared | None = None) -> Bound:
    if op.alias or op.kind == "slices":
        return aliases.bind(op, me, part)
    bound = Bound()
    wanted = expect.outputs(op, me)
    for index, count in enumerate(op.outputs(me)):
        buffer = Buffer(op.shape(count), op.torch_dtype, part.layout_out, part.memory)
        if op.kind in IN_PLACE:
            buffer.fill(values.contribution(op, me, index))
        bound.outs.append(buffer.view)
        bound.checks.append((buffer, wanted[index]))
    if op.kind in IN_PLACE:
        return bound
    if op.shared and shared is not None:
        bound.add_input(shared.input(op, me))
        return bound
    for buffer in _inputs(op, me, part):
        bound.add_input(buffer)
    return bound


def check(bound: Bound) -> list[str]:
    said = []
    for index, (buffer, wanted) in enumerate(bound.checks):
        if text := buffer.as_expected(wanted):
            what = "an input changed" if wanted is None else f"output {index}"
            said.append(f"{what}: {text}")
    return said


def _inputs(op: Op, me: int, part: Part) -> list[Buffer]:
    return [
        Buffer(op.shape(count), op.torch_dtype, part.layout_in, part.memory).fill(
            values.contribution(op, me, index)
        )
        for index, count in enumerate(op.inputs(me))
    ]


def _forget_inputs(bound: Bound) -> None:
    """Drops the inputs, and allocates as much: memory that nobody holds is overwritten at once."""
    sizes = [tensor.nbytes for tensor in bound.ins]
    bound.checks = [(buffer, wanted) for buffer, wanted in bound.checks if wanted is not None]
    bound.ins.clear()
    _junk(sizes)


def _untouched(sizes: list[int]) -> messages.Ending:
    """Allocates as much as the operation's tensors had. Nobody may write there any more."""
    junk = _junk(sizes)

    def end() -> list[str]:
        return ["wrote into memory that it had freed"] * any((t != _JUNK).any() for t in junk)

    return end


def _junk(sizes: list[int]) -> list[Tensor]:
    return [torch.empty(size, dtype=torch.uint8).fill_(_JUNK) for size in sizes]
