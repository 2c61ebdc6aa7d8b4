"""Tensors whose memory is shared by their own elements or with other tensors, or given away in
flight. A call without a defined result is refused. Nothing that happens to a tensor in flight ends
the process or another operation."""

from __future__ import annotations

import datetime
import itertools
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import Op, check, done, expect_reduced, me, values
from harness import distributed
from test_invalid_input import refused, still_works
from torch import Tensor

GLOO = "writes over memory that is not the tensor's, or does not look"
BIG = 100_003
Call = Callable[[Tensor, bool], Any]


def list_of(tensor: Tensor) -> list[Tensor]:
    _, world = me()
    return [torch.zeros(tensor.shape) for _ in range(world - 1)] + [tensor]


def group() -> Any:
    """Has the coalesced operations for which torch.distributed has no functions."""
    assert dist.group.WORLD is not None
    return dist.group.WORLD


# Calls that write into `t`, of shape (2,): the name in errors, that of the argument, the call.
WRITERS: dict[str, tuple[str, Call]] = {
    "all_reduce": ("tensor", lambda t, a: dist.all_reduce(t, async_op=a)),
    "broadcast": ("tensor", lambda t, a: dist.broadcast(t, 0, async_op=a)),
    "reduce": ("tensor", lambda t, a: dist.reduce(t, 0, async_op=a)),
    "all_gather_into_tensor": (
        "output",
        lambda t, a: dist.all_gather_into_tensor(t, torch.ones(2 // me()[1]), async_op=a),
    ),
    "reduce_scatter_tensor": (
        "output",
        lambda t, a: dist.reduce_scatter_tensor(t, torch.ones(2 * me()[1]), async_op=a),
    ),
    "all_to_all_single": (
        "output",
        lambda t, a: dist.all_to_all_single(t, torch.ones(2), async_op=a),
    ),
    "all_gather": (
        "output",
        lambda t, a: dist.all_gather(list_of(t), torch.ones(2), async_op=a),
    ),
    "reduce_scatter": (
        "output",
        lambda t, a: dist.reduce_scatter(t, [torch.ones(2)] * me()[1], async_op=a),
    ),
    "scatter": (
        "output",
        lambda t, a: dist.scatter(
            t, [torch.ones(2)] * me()[1] if me()[0] == 0 else None, 0, async_op=a
        ),
    ),
    "all_to_all": (
        "output",
        lambda t, a: dist.all_to_all(list_of(t), list_of(torch.ones(2)), async_op=a),
    ),
    "all_reduce_coalesced": (
        "tensor",
        lambda t, a: dist.all_reduce_coalesced([torch.ones(2), t], async_op=a),
    ),
    "all_gather_into_tensor_coalesced": (
        "output",
        lambda t, a: group().allgather_into_tensor_coalesced([t], [torch.ones(2 // me()[1])]),
    ),
    "reduce_scatter_tensor_coalesced": (
        "output",
        lambda t, a: group().reduce_scatter_tensor_coalesced([t], [torch.ones(2 * me()[1])]),
    ),
    "all_gather_coalesced": (
        "output",
        lambda t, a: group().allgather_coalesced([[t]] * me()[1], [torch.ones(2)]),
    ),
    "recv": ("tensor", lambda t, a: dist.irecv(t, (me()[0] + 1) % me()[1])),
}


@pytest.mark.parametrize("kind", WRITERS)
@distributed(2, gloo_lacks=GLOO)
def test_an_output_that_overlaps_itself_is_refused(kind: str) -> None:
    argument, call = WRITERS[kind]
    for blocking in (True, False):
        expanded = torch.zeros(1).expand(2)
        refused(call, expanded, not blocking, match=f"(?s){kind}.*{argument}.*share.*clone")
        assert expanded.tolist() == [0.0, 0.0]
    still_works()


@distributed(2, gloo_lacks=GLOO)
def test_gather_refuses_it_at_the_root() -> None:
    rank, _ = me()
    if rank == 0:
        outputs = [torch.zeros(1).expand(2), torch.zeros(2)]
        refused(dist.gather, torch.ones(2), outputs, 0, match="(?s)gather.*output.*share")
    still_works()


# Sizes, strides, and whether two elements share memory.
STRIDES = [
    ((400,), (0,), True),
    ((3, 3), (2, 1), True),
    ((3, 3), (3, 1), False),
    ((3, 3), (1, 3), False),
    ((3, 2), (2, 3), False),  # rows lie between each other, and share nothing
    ((4, 3), (2, 3), True),
    ((5, 7), (7, 5), False),
    ((6, 8), (7, 5), True),
    ((1, 5), (0, 1), False),
    ((0, 5), (0, 0), False),
    ((2, 2, 2), (6, 10, 15), False),
    ((2, 3, 4), (1, 2, 2), True),
    ((), (), False),
]


@distributed(1, 2, gloo_lacks=GLOO)
def test_refused_exactly_when_two_elements_share_memory() -> None:
    _, world = me()
    for sizes, strides, overlap in STRIDES:
        memory = torch.full((500,), -1.0)
        tensor = memory.as_strided(sizes, strides)
        if overlap:
            refused(dist.all_reduce, tensor, match="share")
            assert memory.eq(-1).all()
            continue
        places = torch.arange(500).as_strided(sizes, strides).reshape(-1)
        assert places.unique().numel() == places.numel()
        own = torch.arange(float(places.numel())).reshape(sizes)
        tensor.copy_(own)
        dist.all_reduce(tensor)
        check(tensor.clone(), own * world, sizes, strides)
        memory[places] = -1
        assert memory.eq(-1).all(), "something else was written"


@distributed(2, gloo_lacks=GLOO)
def test_inputs_may_share_memory() -> None:
    _, world = me()
    expanded = torch.ones(1).expand(6)
    gathered = torch.zeros(6 * world)
    dist.all_gather_into_tensor(gathered, expanded)
    assert gathered.eq(1).all()
    output = torch.zeros(3)
    dist.reduce_scatter_tensor(output, expanded)
    assert output.eq(world).all()


def layouts() -> list[Tensor]:
    return [torch.zeros(10), torch.zeros(20)[::2], torch.zeros(BIG), torch.zeros(2 * BIG)[::2]]


@distributed(2, gloo_lacks=GLOO)
def test_given_other_memory_in_flight() -> None:
    """The result goes where the memory was."""
    rank, _ = me()
    for tensor in layouts():
        memory, count = tensor.view_as(tensor), tensor.numel()
        if rank == 0:
            work = dist.irecv(tensor, 1)
            tensor.set_()
        dist.barrier()
        if rank == 1:
            dist.send(values(1, count, torch.float32), 0)
        else:
            done(work)
            check(memory.clone(), values(1, count, torch.float32), count)
            assert tensor.numel() == 0
    still_works()


@distributed(2, gloo_lacks=GLOO)
def test_let_go_in_flight() -> None:
    """The operation alone holds the memory, which lives until the operation ends."""
    rank, _ = me()
    for tensor in layouts():
        count = tensor.numel()
        if rank == 0:
            work = dist.irecv(tensor, 1)
            tensor.set_()
            tensor.data = torch.zeros(3)
            del tensor
            others = [torch.full((count,), 7.0) for _ in range(4)]  # would get it if it were free
        dist.barrier()
        if rank == 1:
            dist.send(values(1, count, torch.float32), 0)
        else:
            done(work)
            assert all(other.eq(7).all() for other in others)
    still_works()


@distributed(2, gloo_lacks=GLOO)
def test_resized_in_flight() -> None:
    """torch refuses it, as for memory of numpy, since peers write there. Afterwards it works."""
    rank, _ = me()
    for tensor in layouts():
        memory, count = tensor.view_as(tensor), tensor.numel()
        if rank == 0:
            work = dist.irecv(tensor, 1)
            with pytest.raises(RuntimeError, match="not resizable"):
                tensor.resize_(50 * count)
            with pytest.raises(RuntimeError, match="not resizable"):
                memory.untyped_storage().resize_(0)
            second = dist.irecv(memory, 1, tag=1)
        dist.barrier()
        if rank == 1:
            dist.send(values(1, count, torch.float32), 0)
            dist.barrier()
            dist.send(values(1, count, torch.float32), 0, tag=1)
        else:
            done(work)
            with pytest.raises(RuntimeError, match="not resizable"):
                memory.untyped_storage().resize_(0)  # the other is in flight still
            dist.barrier()
            done(second)
            check(memory.clone(), values(1, count, torch.float32), count)
            tensor.resize_(50 * count)
    still_works()


@distributed(2, fresh=True, gloo_lacks=GLOO)
def test_forked_in_flight() -> None:
    """The child has its own copy of the tensor, and is told that the operation is its parent's."""
    rank, _ = me()
    tensor = torch.zeros(BIG)
    if rank == 0:
        work = dist.irecv(tensor, 1)
        assert work is not None
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # should it hang
            code = 1
            try:
                tensor.resize_(2 * BIG)
                work.wait()
            except RuntimeError as error:
                code = 0 if "forked" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        dist.barrier()
        work.wait()
        check(tensor, values(1, BIG, torch.float32), "in the parent")
    else:
        dist.barrier()
        dist.send(values(1, BIG, torch.float32), 0)


@distributed(2, fresh=True, gloo_lacks=GLOO)
def test_an_end_that_fails_harms_no_other_operation() -> None:
    """The thread that runs the end of one operation serves others, too."""
    rank, world = me()
    other = dist.new_group(timeout=datetime.timedelta(seconds=30))
    strided = torch.zeros(2 * BIG)[::2]
    if rank == 0:
        work = dist.irecv(strided, 1, group=other)
        strided.set_(torch.zeros(1).untyped_storage(), 0, (7, 3), (0, 0))
    else:
        dist.send(torch.ones(BIG), 0, group=other)
    total = torch.ones(BIG)
    dist.all_reduce(total, group=other)
    assert total.eq(world).all()
    if rank == 0:
        done(work)
    dist.destroy_process_group(other)


def inside(whole: Tensor, place: int, count: int, rank: int) -> Tensor:
    """This rank's input in the memory of its output."""
    return whole[place : place + count].copy_(values(rank, count, torch.float32))


def gathered(count: int) -> Tensor:
    _, world = me()
    return torch.cat([values(peer, count, torch.float32) for peer in range(world)])


# Where the input begins, in counts of a block; 0 is rank 0's own place.
PLACES = (0, 1, 0.5, 0.25)


def gather_into_tensor(output: Tensor, own: Tensor) -> None:
    dist.all_gather_into_tensor(output, own)


def gather_list(output: Tensor, own: Tensor) -> None:
    _, world = me()
    dist.all_gather(list(output.chunk(world)), own)


def gather_at_every_root(output: Tensor, own: Tensor) -> None:
    rank, world = me()
    before = output.clone()
    for root in range(world):
        output.copy_(before)
        dist.gather(own, list(output.chunk(world)) if rank == root else None, root)
        if rank == root:
            result = output.clone()
    output.copy_(result)


def gather_coalesced(output: Tensor, own: Tensor) -> None:
    """The input of another operation lies in the output, too."""
    _, world = me()
    other = output[-(own.numel() // 2) :]
    expected = torch.zeros(world * other.numel())
    dist.all_gather_into_tensor(expected, other.clone())
    second = torch.zeros(world * other.numel())
    group().allgather_into_tensor_coalesced([output, second], [own, other]).wait()
    check(second, expected, "the second")


def gather_lists_coalesced(output: Tensor, own: Tensor) -> None:
    _, world = me()
    lists = [[block, torch.zeros(block.shape)] for block in output.chunk(world)]
    dist.all_gather_coalesced(lists, [own, own])
    for peer, (first, second) in enumerate(lists):
        check(second, first, "the second of", peer)


GATHERS = (
    gather_into_tensor,
    gather_list,
    gather_at_every_root,
    gather_coalesced,
    gather_lists_coalesced,
)


@pytest.mark.parametrize("gather", GATHERS)
@distributed(2, 3, gloo_lacks=GLOO)
def test_a_gathered_input_lies_somewhere_in_the_output(gather: Callable[..., None]) -> None:
    rank, world = me()
    for count, place in itertools.product((8, 4096, BIG // 8 * 8), PLACES):
        output = torch.zeros(world * count)
        own = inside(output, int(place * count), count, rank)
        gather(output, own)
        check(output, gathered(count), count, place)


@distributed(2, 3, gloo_lacks=GLOO)
def test_an_exchanged_input_lies_somewhere_in_the_output() -> None:
    rank, world = me()
    for count, shift in itertools.product((8, BIG), (0, 5)):
        whole = torch.zeros(world * count + shift)
        own = inside(whole, shift, world * count, rank)
        expected = torch.cat(
            [values(r, world * count, torch.float32).chunk(world)[rank] for r in range(world)]
        )
        output = whole[: world * count]
        dist.all_to_all_single(output, own)
        check(output, expected, "all_to_all_single", count, shift)
        own = inside(whole, shift, world * count, rank)
        dist.all_to_all(list(output.chunk(world)), list(own.chunk(world)))
        check(output, expected, "all_to_all", count, shift)


@distributed(2, 3)
def test_outputs_that_overlap_each_other_are_written_in_their_order() -> None:
    """As gloo does: the last one holds what it was sent."""
    rank, world = me()
    for count in (3, BIG):
        tensor = torch.zeros(count)
        dist.all_gather([tensor] * world, values(rank, count, torch.float32))
        check(tensor, values(world - 1, count, torch.float32), "all_gather", count)
        if rank == 0:
            dist.gather(values(0, count, torch.float32), [tensor] * world, 0)
            check(tensor, values(world - 1, count, torch.float32), "gather", count)
        else:
            dist.gather(values(rank, count, torch.float32), None, 0)
        tensor = values(rank, count, torch.float32)
        dist.all_reduce_coalesced([tensor, tensor, tensor.view(-1)])
        check(tensor, expect_reduced(count, torch.float32, Op.SUM), "all_reduce_coalesced", count)


@distributed(2, 3, gloo_lacks="has no PREMUL_SUM")
def test_a_tensor_named_twice_is_scaled_once() -> None:
    rank, _ = me()
    tensor = values(rank, 100, torch.float32)
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = dist._make_nccl_premul_sum(0.5)
    group().allreduce_coalesced([tensor, tensor], options).wait()
    check(tensor, expect_reduced(100, torch.float32, Op.SUM) * 0.5, "PREMUL_SUM")
