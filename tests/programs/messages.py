"""Operations that are not one call with dense tensors: messages, objects and sparse tensors.

Each function here starts one rank's part, and returns a function that ends it and gives complaints.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import calls
import expect
import torch
import torch.distributed as dist
import values
from memory import Buffer, logical
from program import Op, Part
from waits import WAITS

Ending = Callable[[], list[str]]


def start(op: Op, group: Any, me: int) -> Ending:
    return _STARTS[op.kind](op, group, me)


def _nothing() -> list[str]:
    return []


def _buffer(op: Op, part: Part, index: int, sends: bool) -> Buffer:
    shape = op.shape(op.messages[index].count)
    layout = part.layout_in if sends else part.layout_out
    buffer = Buffer(shape, op.torch_dtype, layout, part.memory)
    return buffer.fill(values.sent(op, index)) if sends else buffer


def _content(op: Op, index: int, layout: str) -> torch.Tensor:
    """What arrives: the sender's tensor as its layout has it."""
    return logical(values.sent(op, index), op.shape(op.messages[index].count), layout)


def _exchange(op: Op, group: Any, me: int) -> Ending:
    part = op.parts[me]
    ends = _ends(op, me)
    buffers = [_buffer(op, part, index, sends) for index, sends in ends]
    views = [buffer.view for buffer in buffers]
    works: calls.Works = []
    if part.mode == "block" and len(ends) == 1:
        calls.alone(op, group, ends[0], views[0])
    else:
        works = calls.exchange(op, group, ends, views, batched=part.forget)
    wait = WAITS["wait" if part.mode == "block" else part.mode](works)

    def end() -> list[str]:
        wait()
        said = []
        for (index, sends), buffer in zip(ends, buffers, strict=True):
            message = op.messages[index]
            want = None if sends else _content(op, index, op.parts[message.source].layout_in)
            text = buffer.as_expected(want)
            said += [f"{message}: {text}"] * bool(text)
        return said

    return end


def _ends(op: Op, me: int) -> list[calls.End]:
    """What `me` sends and receives, in an order that differs from rank to rank. Between two ranks
    the messages of one tag stay in order."""
    order = list(range(len(op.messages)))
    random.Random(f"{op.data}/{me}").shuffle(order)
    queues: dict[tuple[int, int, int], list[int]] = {}
    for index, message in enumerate(op.messages):
        queues.setdefault((message.source, message.destination, message.tag), []).append(index)
    ends = []
    for shuffled in order:
        message = op.messages[shuffled]
        index = queues[message.source, message.destination, message.tag].pop(0)
        both = [(index, True)] * (message.source == me) + [(index, False)] * (
            message.destination == me
        )
        ends += both[:: 1 if op.data % 2 else -1]
    return ends


def _any_source(op: Op, group: Any, me: int) -> Ending:
    """All messages go to one rank, with one tag, and have one size."""
    part, tag = op.parts[me], op.messages[0].tag
    if me != op.messages[0].destination:
        return _exchange(op, group, me)
    buffers = [_buffer(op, part, index, False) for index in range(len(op.messages))]
    sources: list[int] = []
    works = []
    for buffer in buffers:
        if part.mode == "block":
            sources.append(op.group.ranks.index(dist.recv(buffer.view, None, group, tag)))
        else:
            works.append(dist.irecv(buffer.view, None, group, tag))

    def end() -> list[str]:
        for work in works:
            assert work is not None
            work.wait()
            sources.append(work._source_rank())
        left = {r: [i for i, m in enumerate(op.messages) if m.source == r] for r in sources}
        said = []
        for buffer, source in zip(buffers, sources, strict=True):
            index = left[source].pop(0) if left[source] else None
            if index is None:
                said.append(f"one message too many from rank {source} of the group")
                continue
            text = buffer.as_expected(_content(op, index, op.parts[source].layout_in))
            said += [f"from rank {source}: {text}"] * bool(text)
        return said

    return end


def _misfit(op: Op, group: Any, me: int) -> Ending:
    """The receiver's tensor is too long: it raises, and the sender may. The group works on."""
    message = op.messages[0]
    if me not in (message.source, message.destination):
        return _nothing
    extra = int(me == message.destination)
    tensor = torch.zeros(message.count + extra, dtype=op.torch_dtype)
    try:
        calls.alone(op, group, (0, me == message.source), tensor)
    except RuntimeError as error:
        sizes = [str(n * tensor.element_size()) for n in (message.count, message.count + 1)]
        said = [] if all(size in str(error) for size in sizes) else [f"the error says {error}"]
        return lambda: said
    return lambda: ["did not raise"] * extra


def _objects(op: Op, group: Any, me: int) -> Ending:
    size, root = op.group.size, op.group.ranks[op.root]
    everyones = [values.thing(op, rank) for rank in range(size)]
    got: list[Any] = [None] * size
    want: list[Any] = everyones
    if op.kind == "all_gather_object":
        dist.all_gather_object(got, everyones[me], group)
    elif op.kind == "gather_object":
        dist.gather_object(everyones[me], got if me == op.root else None, root, group)
        want = everyones if me == op.root else got
    elif op.kind == "broadcast_object_list":
        got = list(everyones) if me == op.root else got
        dist.broadcast_object_list(got, root, group)
    else:
        got, want = [None], [everyones[me]]
        dist.scatter_object_list(got, everyones if me == op.root else None, root, group)
    return lambda: [] if got == want else [f"got {got}, expected {want}"]


def _send_object(op: Op, group: Any, me: int) -> Ending:
    message = op.messages[0]
    want = [values.thing(op, message.source, index) for index in range(2)]
    if me == message.source:
        dist.send_object_list(want, op.group.ranks[message.destination], group)
    if me == message.destination:
        got: list[Any] = [None, None]
        dist.recv_object_list(got, op.group.ranks[message.source], group)
        return lambda: [] if got == want else [f"got {got}, expected {want}"]
    return _nothing


def _sparse(op: Op, group: Any, me: int) -> Ending:
    tensor = values.sparse(op, me)
    work = dist.all_reduce(tensor, group=group, async_op=op.parts[me].mode != "block")
    if work is not None:
        work.wait()
    want = expect.sparse_sum(op)
    got = tensor.to_dense()
    return lambda: [] if torch.equal(got, want) else [f"got {got}, expected {want}"]


def _monitored_barrier(op: Op, group: Any, me: int) -> Ending:
    group.monitored_barrier(wait_all_ranks=op.root == 0)
    return _nothing


_STARTS: dict[str, Callable[[Op, Any, int], Ending]] = {
    "exchange": _exchange,
    "any_source": _any_source,
    "misfit": _misfit,
    "all_gather_object": _objects,
    "gather_object": _objects,
    "broadcast_object_list": _objects,
    "scatter_object_list": _objects,
    "send_object": _send_object,
    "sparse": _sparse,
    "monitored_barrier": _monitored_barrier,
}
KINDS = tuple(_STARTS)
