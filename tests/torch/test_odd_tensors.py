"""Tensors that are not plain memory: conjugates, memory formats, tiny types, subclasses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import check, done, me
from harness import distributed
from test_invalid_input import refused, still_works
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

GLOO = "wants plain memory"


def backend() -> Any:
    """The backend itself: torch's functions change or refuse some of these tensors before it."""
    assert dist.group.WORLD is not None
    return dist.group.WORLD._get_backend(torch.device("cpu"))


@distributed(1, 2, gloo_lacks=GLOO)
def test_conjugates_and_negatives_are_views() -> None:
    _, world = me()
    for asynchronous in (False, True):
        options = dist.AllreduceOptions()
        options.asyncOp = asynchronous
        memory = torch.tensor([1 + 2j, 3 - 1j])
        conjugate = memory.conj()
        done(backend().allreduce([conjugate], options))
        check(memory, torch.tensor([1 + 2j, 3 - 1j]) * world, "what the conjugate is a view of")
        negative = memory.conj().imag
        assert negative.is_neg()
        done(backend().allreduce([negative], options))
        check(memory.imag.clone(), torch.tensor([2.0, -1.0]) * world**2, "imaginary parts")
        gathered = torch.zeros(2 * world, dtype=torch.complex64)
        done(backend()._allgather_base(gathered, memory.conj()))
        check(gathered[-2:].clone(), memory.conj().resolve_conj(), "all_gather")


@distributed(2, gloo_lacks=GLOO)
def test_memory_formats_stay() -> None:
    rank, world = me()
    plain = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5) + rank
    image = plain.contiguous(memory_format=torch.channels_last)
    dist.all_reduce(image)
    assert image.is_contiguous(memory_format=torch.channels_last)
    expected = world * plain + world * (world - 1) / 2 - world * rank
    check(image.contiguous(), expected, "all_reduce")
    gathered = torch.zeros(2 * world, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    dist.all_gather_into_tensor(gathered, image)
    check(gathered.contiguous(), expected.repeat(world, 1, 1, 1), "all_gather")


@distributed(2, gloo_lacks=GLOO)
def test_types_that_torch_itself_does_not_copy_are_moved() -> None:
    """As bytes, and strided ones, too."""
    rank, _ = me()
    for dtype in (torch.uint4, torch.int2, torch.bits8, torch.float4_e2m1fn_x2):
        memory = torch.full((10,), 3 + rank, dtype=torch.uint8)
        for tensor in (memory.view(dtype), memory.view(dtype)[::2]):
            if rank == 0:
                dist.send(tensor, 1)
            else:
                dist.recv(tensor, 0)
        if rank == 1:
            assert memory.eq(3).all(), dtype


@distributed(1, 2)
def test_tensors_of_no_dimension_and_of_no_element() -> None:
    _, world = me()
    scalar = torch.tensor(3.0)
    dist.all_reduce(scalar)
    assert scalar.shape == () and scalar.item() == 3 * world
    for shape in ((0,), (3, 0), (0, 5)):
        empty = torch.zeros(shape)
        dist.all_reduce(empty)
        dist.broadcast(empty, 0)
        dist.all_gather([torch.zeros(shape) for _ in range(world)], empty)
        dist.all_gather([empty] * world, empty)


@distributed(1, 2)
def test_inference_tensors_and_leaves() -> None:
    _, world = me()
    with torch.inference_mode():
        plain, strided = torch.ones(4), torch.ones(8)[::2]
        done(dist.all_reduce(plain, async_op=True))
    done(dist.all_reduce(plain, async_op=True))
    assert plain.eq(world**2).all()
    leaf = torch.ones(4, requires_grad=True)
    dist.all_reduce(leaf)
    assert leaf.is_leaf and leaf.requires_grad and leaf.eq(world).all()
    dist.barrier()
    assert strided.eq(1).all()


@distributed(1, 2, gloo_lacks=GLOO)
def test_strided_inference_tensors_and_leaves() -> None:
    _, world = me()
    with torch.inference_mode():
        strided = torch.ones(8)[::2]
        done(dist.all_reduce(strided, async_op=True))
    dist.all_reduce(strided)
    assert strided.eq(world**2).all()
    leaf = torch.ones(4, 4, requires_grad=True)
    dist.all_reduce(leaf.t())
    assert leaf.grad_fn is None and leaf.eq(world).all()


class Wrapper(Tensor):
    """A tensor that says that it is on the CPU, and has no memory there."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> Wrapper:
        return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, func: Any, *_: Any) -> None:
        raise NotImplementedError(f"no {func}")


@distributed(1, 2, gloo_lacks=GLOO)
def test_tensors_without_memory_are_refused() -> None:
    _, world = me()
    with FakeTensorMode():
        fake = torch.ones(4)
    functional = torch._to_functional_tensor(torch.ones(4))
    for tensor in (fake, functional, Wrapper(torch.ones(4))):
        refused(backend().allreduce, [tensor], match="no memory")
        refused(backend()._allgather_base, torch.ones(4 * world), tensor, match="no memory")
    with pytest.raises(NotImplementedError, match="no c10d.allreduce_"):
        dist.all_reduce(Wrapper(torch.ones(4)))  # torch asks the subclass
    still_works()
