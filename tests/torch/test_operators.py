"""torch.ops.rdmacoll: every type, operation and size, exact; beside c10d's calls; bad arguments."""

from __future__ import annotations

import itertools
import threading

import pytest
import torch
import torch.distributed as dist
from cases import (
    LARGE,
    MOVABLE,
    OPS,
    REDUCIBLE,
    Op,
    OpType,
    check,
    contiguous,
    done,
    expect_reduced,
    me,
    offset,
    reduction_exists,
    reductions,
    small_counts,
    values,
)
from harness import distributed

GLOO = "the operators are those of the backend rdma"
WORLDS = (1, 2, 3, 4)
LAYOUTS = (contiguous, offset)
NAMES = dict(zip(OPS, ("sum", "avg", "product", "min", "max", "band", "bor", "bxor"), strict=True))


def handle(group: dist.ProcessGroup | None = None) -> int:
    import rdmacoll.ops

    return rdmacoll.ops.handle(group)


def all_reduce(dtype: torch.dtype, op: OpType, count: int) -> None:
    rank, _ = me()
    for layout in LAYOUTS:
        tensor = layout(values(rank, count, dtype, op))
        torch.ops.rdmacoll.all_reduce_(tensor, handle(), NAMES[op])
        check(tensor, expect_reduced(count, dtype, op), dtype, op, count, layout.__name__)


def reduce_scatter(dtype: torch.dtype, op: OpType, count: int) -> None:
    rank, world = me()
    own = values(rank, count * world, dtype, op)
    expected = expect_reduced(count * world, dtype, op).chunk(world)[rank] if count else own
    for layout in LAYOUTS:
        tensor, output = layout(own), layout(torch.zeros(count, dtype=dtype))
        torch.ops.rdmacoll.reduce_scatter_into(output, tensor, handle(), NAMES[op])
        check(output, expected, dtype, op, count, layout.__name__)
        check(tensor, own, dtype, op, count, "the input was touched")


def all_gather(dtype: torch.dtype, count: int) -> None:
    rank, world = me()
    expected = torch.cat([values(peer, count, dtype) for peer in range(world)])
    for layout in LAYOUTS:
        output = layout(torch.zeros(count * world, dtype=dtype))
        torch.ops.rdmacoll.all_gather_into(output, layout(values(rank, count, dtype)), handle())
        check(output, expected, dtype, count, layout.__name__)
    output = torch.zeros(count * world, dtype=dtype)
    own = output[rank * count : (rank + 1) * count].copy_(values(rank, count, dtype))
    torch.ops.rdmacoll.all_gather_into(output, own, handle())
    check(output, expected, dtype, count, "in place")


def all_to_all(dtype: torch.dtype, count: int) -> None:
    rank, world = me()
    sent = [values(peer, count * world, dtype) for peer in range(world)]
    expected = torch.cat([one[rank * count : (rank + 1) * count] for one in sent])
    for layout in LAYOUTS:
        output = layout(torch.zeros(count * world, dtype=dtype))
        torch.ops.rdmacoll.all_to_all_into(output, layout(sent[rank]), handle())
        check(output, expected, dtype, count, layout.__name__)


def broadcast(dtype: torch.dtype, count: int) -> None:
    rank, world = me()
    for root, layout in itertools.product(range(world), LAYOUTS):
        tensor = layout(values(rank, count, dtype))
        torch.ops.rdmacoll.broadcast_(tensor, handle(), root)
        check(tensor, values(root, count, dtype), dtype, count, root, layout.__name__)


@distributed(*WORLDS, gloo_lacks=GLOO)
def test_every_type_and_operation() -> None:
    _, world = me()
    for (dtype, op), count in itertools.product(reductions(), small_counts(world)):
        all_reduce(dtype, op, count)
        reduce_scatter(dtype, op, count)


@distributed(*WORLDS, gloo_lacks=GLOO)
def test_every_type_that_is_moved() -> None:
    _, world = me()
    for dtype, count in itertools.product(MOVABLE, small_counts(world)):
        all_gather(dtype, count)
        all_to_all(dtype, count)
        broadcast(dtype, count)


@distributed(*WORLDS, gloo_lacks=GLOO)
def test_large() -> None:
    all_reduce(torch.float32, Op.SUM, LARGE)
    reduce_scatter(torch.bfloat16, Op.SUM, LARGE // 4)
    all_gather(torch.float32, LARGE // 4)
    all_to_all(torch.float32, LARGE // 4)
    broadcast(torch.float32, LARGE)


@distributed(*WORLDS, gloo_lacks=GLOO)
def test_shapes_and_defaults() -> None:
    rank, world = me()
    tensor = values(rank, 6, torch.float32).reshape(2, 1, 3)
    torch.ops.rdmacoll.all_reduce_(tensor, handle())
    check(tensor, expect_reduced(6, torch.float32, Op.SUM).reshape(2, 1, 3))
    scalar = torch.tensor(float(rank))
    torch.ops.rdmacoll.broadcast_(scalar, handle())
    assert scalar.item() == 0
    stacked = torch.zeros(world, 2, 3)
    torch.ops.rdmacoll.all_gather_into(stacked, torch.full((2, 3), float(rank)), handle())
    check(stacked, torch.arange(float(world)).view(-1, 1, 1).repeat(1, 2, 3))


@distributed(*WORLDS, gloo_lacks=GLOO)
def test_all_to_all_of_uneven_rows() -> None:
    """Rank r sends p + r rows to rank p."""
    rank, world = me()
    sent = [peer + rank for peer in range(world)]
    coming = [rank + peer for peer in range(world)]
    tensor = torch.full((sum(sent), 3), rank)
    output = torch.full((sum(coming), 3), -1)
    torch.ops.rdmacoll.all_to_all_into(output, tensor, handle(), coming, sent)
    assert output[:, 0].tolist() == [p for p in range(world) for _ in range(coming[p])]


@distributed(2, 3, 4, gloo_lacks=GLOO)
def test_in_order_with_the_calls_of_torch() -> None:
    """Calls that are in flight, of the same thread and group, are passed by none."""
    rank, world = me()
    for step in range(50):
        before, own, after = (torch.full((1021,), float(rank + step)) for _ in range(3))
        first = dist.all_reduce(before, async_op=True)
        torch.ops.rdmacoll.all_reduce_(own, handle())
        second = dist.all_reduce(after, async_op=True)
        torch.ops.rdmacoll.broadcast_(torch.ones(3), handle(), step % world)
        done(first)
        done(second)
        expected = torch.full((1021,), float(world * step + world * (world - 1) // 2))
        for tensor in (before, own, after):
            check(tensor, expected, step)


@distributed(4, gloo_lacks=GLOO)
def test_groups_have_handles_of_their_own() -> None:
    rank, _ = me()
    groups = [dist.new_group(pair) for pair in ([0, 1], [2, 3])]
    own = groups[rank // 2]
    assert handle(own) == handle(own) != handle()
    tensor = torch.tensor([rank])
    torch.ops.rdmacoll.all_reduce_(tensor, handle(own))
    assert tensor.item() == (1 if rank < 2 else 5)
    torch.ops.rdmacoll.broadcast_(tensor, handle(own), 1)  # a rank of the group


@distributed(2, 3, gloo_lacks=GLOO)
def test_two_threads_on_two_groups() -> None:
    rank, world = me()
    groups = [dist.new_group() for _ in range(2)]
    wrong: list[object] = []

    def use(number: int) -> None:
        try:
            named = handle(groups[number])
            for step in range(300):
                tensor = torch.full((7,), float(rank + step * (number + 1)))
                torch.ops.rdmacoll.all_reduce_(tensor, named)
                total = world * step * (number + 1) + world * (world - 1) // 2
                if tensor.tolist() != [float(total)] * 7:
                    wrong.append((number, step, tensor))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def refused(words: str, call: str, *arguments: object, kind: type = RuntimeError) -> None:
    """It raises, touches no tensor, and tells no other rank."""
    tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
    copies = [one.detach().clone() for one in tensors]
    with pytest.raises(kind, match=words):
        getattr(torch.ops.rdmacoll, call)(*arguments)
    for tensor, copy in zip(tensors, copies, strict=True):
        if tensor.layout == torch.strided:
            check(tensor.detach(), copy, call, words)


@distributed(1, 2, gloo_lacks=GLOO)
def test_bad_arguments_are_refused() -> None:
    rank, world = me()
    group, four = handle(), torch.ones(4)
    if rank == 0:  # the other rank takes no part
        refused(r"unknown op='mean'; give one of sum, avg,", "all_reduce_", four, group, "mean")
        refused(r"unknown op='SUM'", "reduce_scatter_into", four, four.repeat(world), group, "SUM")
        turned = torch.ones(3, 4).t()
        refused(r"tensor is not contiguous .*contiguous\(\)", "all_reduce_", turned, group)
        refused(r"tensor is not contiguous", "broadcast_", turned, group)
        wide = torch.ones(2, 4 * world)
        refused(r"output is not contiguous", "all_gather_into", wide[:, ::2], wide[0, :4], group)
        refused(r"input is not contiguous", "all_to_all_into", wide, wide.t(), group)
        float8 = torch.ones(4).to(torch.float8_e5m2)
        refused(r"unsupported dtype: Float8_e5m2", "all_reduce_", float8, group)
        refused(r"layout: tensor is Sparse", "all_reduce_", torch.eye(3).to_sparse(), group)
        refused(r"invalid root rank: 7", "broadcast_", four, group, 7)
        small = torch.ones(4 * world + 1)
        refused(r"output has .* elements", "all_gather_into", small, four, group)
        refused(r"input has .* elements", "reduce_scatter_into", four, small, group)
        ints = torch.ones(4 * world, dtype=torch.int32)
        refused(r"invalid tensor type", "all_gather_into", ints, four, group)
        refused(r"invalid tensor type", "all_to_all_into", ints, ints.float(), group)
        refused(r"", "all_to_all_into", ints, ints.clone(), group, [9] * world, [4] * world)
    dist.barrier()
    all_reduce(torch.float32, Op.SUM, 5)


@distributed(2, gloo_lacks=GLOO)
def test_operations_that_do_not_exist_are_refused() -> None:
    rank, world = me()
    for dtype, op in itertools.product(REDUCIBLE, OPS):
        if rank == 0 and not reduction_exists(dtype, op):
            tensor, group, name = values(0, 4, dtype), handle(), NAMES[op]
            refused("op=", "all_reduce_", tensor, group, name, kind=NotImplementedError)
            output = values(0, 2, dtype)
            refused("op=", "reduce_scatter_into", output, tensor, group, name)
    dist.barrier()


@distributed(1, 2, gloo_lacks=GLOO)
def test_gradients_are_refused() -> None:
    rank, world = me()
    group, four = handle(), torch.ones(4)
    weight = torch.ones(4, requires_grad=True)
    if rank == 0:
        for tensor in (weight, weight * 2):
            refused("no derivative.*no_grad", "all_reduce_", tensor, group)
            refused("no derivative", "broadcast_", tensor, group)
            refused("no derivative", "all_gather_into", four.repeat(world), tensor, group)
            refused("no derivative", "all_to_all_into", tensor, four, group)
            refused("no derivative", "reduce_scatter_into", tensor, four.repeat(world), group)
    dist.barrier()
    with torch.no_grad():
        torch.ops.rdmacoll.all_reduce_(weight, group)
    check(weight.detach(), torch.full((4,), float(world)))
    with torch.inference_mode():
        torch.ops.rdmacoll.all_reduce_(four, group)
    check(four, torch.full((4,), float(world)))


@distributed(1, 2, gloo_lacks=GLOO)
def test_what_was_saved_for_a_backward_is_known_to_have_changed() -> None:
    saved, weight = torch.ones(4), torch.ones(4, requires_grad=True)
    loss = (weight * saved).sum()
    torch.ops.rdmacoll.all_reduce_(saved, handle())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
