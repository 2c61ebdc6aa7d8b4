"""One operation of tensors on one rank: binds its tensors, starts it, ends it, checks it.

Not here: when and in which thread that happens (rank.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import calls
import expect
import messages
import torch
import values
from memory import Buffer
from program import IN_PLACE, Op, Part
from torch import Tensor
from waits import WAITS, Waiter

_JUNK = 0x5A


@dataclass
class Bound:
    ins: list[Tensor] = field(default_factory=list)
    outs: list[Tensor] = field(default_factory=list)
    # With what they must hold at the end; None: what they held before.
    checks: list[tuple[Buffer, Tensor | None]] = field(default_factory=list)

    def add_input(self, buffer: Buffer) -> None:
        self.ins.append(buffer.view)
        self.checks.append((buffer, None))


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

    def end() -> list[str]:
        if wait is not None:
            wait()
        return check(bound)

    return end


def bind(op: Op, me: int, part: Part, shared: Shared | None = None) -> Bound:
    if op.alias:
        return _bind_aliased(op, me, part)
    if op.kind == "slices":
        return _bind_slices(op, me, part)
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


def _bind_aliased(op: Op, me: int, part: Part) -> Bound:
    """The smaller of input and output lies in the larger; where both are lists, they share one."""
    dtype, bound = op.torch_dtype, Bound()
    wanted = expect.outputs(op, me)
    given = values.contributions(op, me)
    block = me if op.alias == "own" else (me + 1) % op.group.size

    def make(flat: Tensor | None, count: int) -> Buffer:
        buffer = Buffer((count,), dtype, "flat", part.memory)
        return buffer if flat is None else buffer.fill(flat)

    match op.kind:
        case "all_gather_into_tensor":
            count = op.counts[0]
            whole = make(None, count * op.group.size)
            bound.ins = [whole.view[block * count : (block + 1) * count].copy_(given[0])]
            bound.outs, bound.checks = [whole.view], [(whole, wanted[0])]
        case "reduce_scatter_tensor":
            count, whole = op.counts[0], make(given[0], given[0].numel())
            at = slice(block * count, (block + 1) * count)
            bound.ins, bound.outs = [whole.view], [whole.view[at]]
            after = given[0].clone()
            after[at] = _present(wanted[0])
            bound.checks = [(whole, after)]
        case "all_to_all_single" | "all_to_all":
            both = [make(flat, flat.numel()) for flat in given]
            bound.ins = bound.outs = [
                buffer.view.view(op.shape(buffer.view.numel())) for buffer in both
            ]
            bound.checks = list(zip(both, wanted, strict=True))
        case "all_gather" | "gather":  # the input is one of the outputs
            outs = [make(None, count) for count in op.outputs(me)]
            bound.outs, bound.checks = [b.view for b in outs], list(zip(outs, wanted, strict=True))
            bound.ins = [bound.outs[me].copy_(given[0])] if outs else []
            if not outs:
                bound.add_input(make(given[0], given[0].numel()))
        case "scatter" | "reduce_scatter":  # the output is one of the inputs
            ins = [make(flat, flat.numel()) for flat in given] or [make(None, op.counts[me])]
            bound.ins = [buffer.view for buffer in ins] if given else []
            mine = me if given else 0
            bound.outs = [ins[mine].view]
            bound.checks = [(b, wanted[0] if i == mine else None) for i, b in enumerate(ins)]
    return bound


def _bind_slices(op: Op, me: int, part: Part) -> Bound:
    """Operations in flight that are neighbours."""
    counts = op.inputs(me)
    whole = Buffer((sum(counts),), op.torch_dtype, part.layout_out, part.memory)
    whole.fill(torch.cat(values.contributions(op, me)))
    wanted = torch.cat([_present(flat) for flat in expect.outputs(op, me)])
    return Bound([], list(whole.view.split(counts)), [(whole, wanted)])


def _present(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor


def _forget_inputs(bound: Bound) -> None:
    """Memory of the inputs, if nobody holds it, gets other contents at once."""
    sizes = [tensor.nbytes for tensor in bound.ins]
    bound.checks = [(buffer, wanted) for buffer, wanted in bound.checks if wanted is not None]
    bound.ins.clear()
    _junk(sizes)


def _untouched(sizes: list[int]) -> messages.Ending:
    """Memory that was an operation's, if nobody holds it, is another's, who keeps its contents."""
    junk = _junk(sizes)

    def end() -> list[str]:
        return ["wrote into memory that it had freed"] * any((t != _JUNK).any() for t in junk)

    return end


def _junk(sizes: list[int]) -> list[Tensor]:
    return [torch.empty(size, dtype=torch.uint8).fill_(_JUNK) for size in sizes]
