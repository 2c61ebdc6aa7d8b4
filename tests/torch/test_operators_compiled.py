"""torch.ops.rdmacoll under torch.compile, and what torch asks of an operator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from cases import check, me, values
from harness import distributed
from test_operators import GLOO, WORLDS, handle
from torch import Tensor, nn

BACKENDS = ("aot_eager", "inductor")
SLOW_S = 280.0  # a compiler runs


def own_process() -> None:
    """Inductor's own compilers would be children of this rank."""
    from torch._inductor import config

    config.compile_threads = 1
    torch._dynamo.reset()


def every_operator(x: Tensor, group: int, world: int) -> tuple[Tensor, ...]:
    """x has world * n elements. Each result goes on into the next call."""
    summed = x * 2
    torch.ops.rdmacoll.all_reduce_(summed, group)
    summed = summed + 1
    share = summed.new_empty(summed.shape[0] // world)
    torch.ops.rdmacoll.reduce_scatter_into(share, summed, group, "max")
    share = share - 3
    whole = torch.empty_like(summed)
    torch.ops.rdmacoll.all_gather_into(whole, share, group)
    turned = torch.empty_like(whole)
    torch.ops.rdmacoll.all_to_all_into(turned, whole * x, group)
    told = turned + x
    torch.ops.rdmacoll.broadcast_(told, group, world - 1)
    return summed, share, whole, turned, told.neg()


@distributed(*WORLDS, gloo_lacks=GLOO, deadline_s=SLOW_S)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_operator(backend: str) -> None:
    own_process()
    rank, world = me()
    compiled = torch.compile(every_operator, fullgraph=True, backend=backend)
    for count in (8, 12, 20):  # the second one makes the size a symbol
        x = values(rank, count * world, torch.float32)
        with torch.no_grad():
            expected = every_operator(x.clone(), handle(), world)
            for got, wanted in zip(compiled(x, handle(), world), expected, strict=True):
                check(got, wanted, backend, count)


@distributed(2, gloo_lacks=GLOO, deadline_s=SLOW_S)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_is_written_in_place(backend: str) -> None:
    own_process()
    rank, world = me()

    def reduce(x: Tensor, group: int) -> None:
        torch.ops.rdmacoll.all_reduce_(x, group)

    x = values(rank, 30, torch.float32)
    torch.compile(reduce, fullgraph=True, backend=backend)(x, handle())
    check(x, sum(values(peer, 30, torch.float32) for peer in range(world)))


@distributed(2, gloo_lacks=GLOO, deadline_s=SLOW_S)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_part_of_a_tensor_is_written_in_place(backend: str) -> None:
    own_process()
    rank, _ = me()

    def reduce(x: Tensor, group: int) -> Tensor:
        rows = x.clone()
        torch.ops.rdmacoll.all_reduce_(rows[1], group)
        return rows + 1

    x = torch.full((3, 5), float(rank))
    compiled = torch.compile(reduce, fullgraph=True, backend=backend)
    check(compiled(x, handle()), torch.tensor([rank + 1.0, 2.0, rank + 1.0])[:, None].repeat(1, 5))


@distributed(2, gloo_lacks=GLOO, deadline_s=SLOW_S)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_layer_of_tensor_parallelism(backend: str) -> None:
    own_process()
    rank, world = me()
    torch.manual_seed(1)
    up, down, x = torch.randn(16, 8), torch.randn(8, 16), torch.randn(4, 8)
    own = slice(rank * 16 // world, (rank + 1) * 16 // world)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Parameter(up[own]), nn.Parameter(down[:, own])

        def forward(self, x: Tensor, group: int) -> Tensor:
            out = nn.functional.linear(nn.functional.silu(x @ self.up.t()), self.down)
            torch.ops.rdmacoll.all_reduce_(out, group)
            return out

    layer = torch.compile(Layer(), fullgraph=True, backend=backend)
    with torch.inference_mode():
        got = layer(x, handle())
    torch.testing.assert_close(got, nn.functional.silu(x @ up.t()) @ down.t())


@distributed(2, gloo_lacks=GLOO, deadline_s=SLOW_S)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_whose_result_a_rank_does_not_use_is_made(backend: str) -> None:
    own_process()
    rank, world = me()

    def reduce(x: Tensor, group: int, uses: bool) -> Tensor:
        y = x * 2
        torch.ops.rdmacoll.all_reduce_(y, group)
        gathered = y.new_empty(world * 3)
        torch.ops.rdmacoll.all_gather_into(gathered, x, group)
        return y + gathered[:3] if uses else x + 1

    compiled = torch.compile(reduce, fullgraph=True, backend=backend)
    got = compiled(torch.ones(3), handle(), rank == 0)
    dist.barrier()  # which is not what the other rank waits in otherwise
    check(got, torch.full((3,), 5.0 if rank == 0 else 2.0))


@distributed(2, gloo_lacks=GLOO, deadline_s=SLOW_S)
@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_refused(backend: str) -> None:
    own_process()

    def reduce(x: Tensor, group: int) -> Tensor:
        y = x * 2
        torch.ops.rdmacoll.all_reduce_(y, group)
        return y

    compiled = torch.compile(reduce, fullgraph=True, backend=backend)
    with pytest.raises(Exception, match="no derivative"):
        compiled(torch.ones(4, requires_grad=True), handle())


@distributed(2, gloo_lacks=GLOO, deadline_s=SLOW_S)
def test_errors_come_out_of_compiled_code() -> None:
    own_process()

    def reduce(x: Tensor, group: int) -> Tensor:
        torch.ops.rdmacoll.all_reduce_(x, group, "mean")
        return x

    compiled = torch.compile(reduce, fullgraph=True, backend="aot_eager")
    with pytest.raises(RuntimeError, match="unknown op='mean'"):
        compiled(torch.ones(4), handle())


CHECKED: dict[str, Callable[[int, int], tuple[object, ...]]] = {
    "all_reduce_": lambda group, world: (torch.ones(4), group, "max"),
    "broadcast_": lambda group, world: (torch.ones(4), group, world - 1),
    "all_gather_into": lambda group, world: (torch.zeros(4 * world), torch.ones(4), group),
    "reduce_scatter_into": lambda group, world: (torch.zeros(4), torch.ones(4 * world), group),
    "all_to_all_into": lambda group, world: (
        *(torch.zeros(4 * world), torch.ones(4 * world), group),
        *([4] * world, [4] * world),
    ),
}


@distributed(1, 2, gloo_lacks=GLOO, deadline_s=SLOW_S)
@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name: str) -> None:
    own_process()
    _, world = me()
    arguments = CHECKED[name](handle(), world)
    torch.library.opcheck(getattr(torch.ops.rdmacoll, name).default, arguments)
    dist.barrier()
