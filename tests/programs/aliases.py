"""Binds an operation to tensors that lie in one another. The ways, and the kind `slices`:

own: the input lies where in-place forms have it, in its own block of the output, or the reverse.
elsewhere: it lies anywhere else in it. stacked: the outputs overlap each other, and the last holds
what it was sent. slices: the tensors are neighbours in one, and each has an operation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import expect
import torch
import values
from memory import Buffer
from program import Op, Part
from torch import Tensor


@dataclass
class Bound:
    ins: list[Tensor] = field(default_factory=list)
    outs: list[Tensor] = field(default_factory=list)
    # Each buffer with what it must hold at the end; None: what it held before.
    checks: list[tuple[Buffer, Tensor | None]] = field(default_factory=list)

    def add_input(self, buffer: Buffer) -> None:
        self.ins.append(buffer.view)
        self.checks.append((buffer, None))


def bind(op: Op, me: int, part: Part) -> Bound:
    if op.kind == "slices":
        return _slices(op, me, part)
    if op.alias == "stacked":
        return _stacked(op, me, part)
    if op.kind in ("all_gather_into_tensor", "reduce_scatter_tensor"):
        return _in_a_whole(op, me, part)
    if op.kind == "all_to_all_single":
        return _shifted(op, me, part)
    if op.kind in ("scatter", "reduce_scatter"):
        return _output_in_list(op, me, part)
    return _input_in_list(op, me, part)


def _flat(op: Op, part: Part, count: int, content: Tensor | None = None) -> Buffer:
    buffer = Buffer((count,), op.torch_dtype, "flat", part.memory)
    return buffer if content is None else buffer.fill(content)


def _slices(op: Op, me: int, part: Part) -> Bound:
    counts = op.inputs(me)
    whole = Buffer((sum(counts),), op.torch_dtype, part.layout_out, part.memory)
    whole.fill(torch.cat(values.contributions(op, me)))
    wanted = torch.cat([_present(flat) for flat in expect.outputs(op, me)])
    return Bound([], list(whole.view.split(counts)), [(whole, wanted)])


def _stacked(op: Op, me: int, part: Part) -> Bound:
    counts = op.outputs(me)
    starts = [sum(count - count // 2 for count in counts[:index]) for index in range(len(counts))]
    places = [slice(at, at + count) for at, count in zip(starts, counts, strict=True)]
    whole = _flat(op, part, max((place.stop for place in places), default=0))
    after = whole.view.clone()
    for place, flat in zip(places, expect.outputs(op, me), strict=True):
        after[place] = _present(flat)
    bound = Bound([], [whole.view[place] for place in places], [(whole, after)])
    for flat in values.contributions(op, me):
        bound.add_input(_flat(op, part, flat.numel(), flat))
    return bound


def _in_a_whole(op: Op, me: int, part: Part) -> Bound:
    """Elsewhere means across two blocks."""
    count, size = op.counts[0], op.group.size
    start = me * count if op.alias == "own" else count // 2 if size > 1 else 0
    place = slice(start, start + count)
    given, wanted = values.contribution(op, me, 0), _present(expect.outputs(op, me)[0])
    if op.kind == "all_gather_into_tensor":
        whole = _flat(op, part, count * size)
        return Bound([whole.view[place].copy_(given)], [whole.view], [(whole, wanted)])
    whole = _flat(op, part, count * size, given)
    after = given.clone()
    after[place] = wanted
    return Bound([whole.view], [whole.view[place]], [(whole, after)])


def _shifted(op: Op, me: int, part: Part) -> Bound:
    """The output lies over the input, or begins two rows behind its start."""
    given, wanted = values.contribution(op, me, 0), _present(expect.outputs(op, me)[0])
    shift = 0 if op.alias == "own" else 2 * op.width
    before = torch.cat([given, given.new_zeros(shift)])
    whole = _flat(op, part, before.numel(), before)
    after = before.clone()
    after[shift:] = wanted
    ins = whole.view[: given.numel()].view(op.shape(given.numel()))
    outs = whole.view[shift : shift + given.numel()].view(op.shape(given.numel()))
    return Bound([ins], [outs], [(whole, after)])


def _input_in_list(op: Op, me: int, part: Part) -> Bound:
    """Each input is an output: this rank's own, or another."""
    given, wanted = values.contributions(op, me), expect.outputs(op, me)
    outs = [_flat(op, part, count) for count in op.outputs(me)]
    bound = Bound([], [buffer.view for buffer in outs], list(zip(outs, wanted, strict=True)))
    if not outs:
        bound.add_input(_flat(op, part, given[0].numel(), given[0]))
        return bound
    if op.kind == "all_to_all":
        places = bound.outs if op.alias == "own" else bound.outs[::-1]
    else:
        places = [bound.outs[_place(op, me)]]
    bound.ins = [place.copy_(flat) for place, flat in zip(places, given, strict=True)]
    return bound


def _output_in_list(op: Op, me: int, part: Part) -> Bound:
    given, wanted = values.contributions(op, me), expect.outputs(op, me)
    if not given:
        alone = _flat(op, part, op.counts[me])
        return Bound([], [alone.view], [(alone, wanted[0])])
    ins, place = [_flat(op, part, flat.numel(), flat) for flat in given], _place(op, me)
    checks = [(b, wanted[0] if index == place else None) for index, b in enumerate(ins)]
    return Bound([buffer.view for buffer in ins], [ins[place].view], checks)


def _place(op: Op, me: int) -> int:
    return me if op.alias == "own" else (me + 1) % op.group.size


def _present(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor
