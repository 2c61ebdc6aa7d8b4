"""torch's sharded tensors: what a rank has of one, and the ranks of its mesh together."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeGuard, TypeVar, cast

import torch
import torch.distributed as dist

from ..memory.checks import check_tensor
from .parts import Part, make_up

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor

State = Mapping[str, torch.Tensor]
Result = TypeVar("Result")


def is_sharded(tensor: object) -> TypeGuard[DTensor]:
    """Nobody has a DTensor before its module is imported, which takes a second."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """What lies on this rank."""
    with torch.no_grad():
        return tensor.to_local() if is_sharded(tensor) else tensor


def like(local: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """This as what lies on this rank of a tensor that is sharded as that one."""
    if not is_sharded(tensor):
        return local
    return type(tensor).from_local(
        local,
        tensor.device_mesh,
        tensor.placements,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )


def form_of(tensor: torch.Tensor) -> tuple[object, ...]:
    """What is equal of two tensors of which this rank has the same part."""
    if not is_sharded(tensor):
        return (tuple(tensor.shape),)
    return (tuple(tensor.shape), tuple(tensor.placements), tensor.device_mesh)


def part_of(argument: str, tensor: torch.Tensor) -> Part:
    """What this rank has of the whole.

    Raises ValueError for a part that is no box of it, and for tensors that are not dense on the
    CPU.
    """
    check_tensor(argument, local_of(tensor))
    if not is_sharded(tensor):
        return Part.whole(tensor.shape)
    from torch.distributed.tensor import Replicate, Shard, _utils

    mesh, placements = tensor.device_mesh, tensor.placements
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        raise ValueError(f"{argument} is sharded over {mesh}, of which this rank is not")
    if any(placement.is_partial() for placement in placements):
        raise ValueError(
            f"{argument} has placements {placements}, so its ranks hold terms of a sum; "
            "redistribute() it to Shard or Replicate first"
        )
    own = tuple(coordinate)
    # How others cut may leave rows of a rank apart. Only all ranks together show whether it does.
    is_simple = all(type(placement) in (Shard, Replicate) for placement in placements)
    boxes = {}
    for place in [own] if is_simple else itertools.product(*map(range, mesh.shape)):
        sizes, offsets = _utils._compute_local_shape_and_global_offset(
            tuple(tensor.shape), tuple(mesh.shape), list(place), placements
        )
        boxes[place] = Part(tuple(offsets), tuple(sizes))
    filled = {box for box in boxes.values() if box.elements}
    if not is_simple and not make_up(list(filled), tensor.shape):
        raise ValueError(
            f"{argument} has placements {placements}, by which the rows of a rank lie apart in the "
            "whole; redistribute() it to Shard or Replicate first"
        )
    return boxes[own]


def mesh_of(state: State) -> DeviceMesh | None:
    """That over which the state is sharded: the largest of its tensors'. None: it is not.

    Raises ValueError if another reaches beyond it.
    """
    meshes = {name: tensor.device_mesh for name, tensor in state.items() if is_sharded(tensor)}
    if not meshes:
        return None
    largest = max(meshes.values(), key=lambda mesh: mesh.size())
    ranks = set(largest.mesh.flatten().tolist())
    for name, mesh in meshes.items():
        if not ranks.issuperset(mesh.mesh.flatten().tolist()):
            raise ValueError(
                f"state[{name!r}] is sharded over {mesh}, which is not part of {largest}; publish "
                "or load what is on different ranks by itself"
            )
    return largest


def on_all(mesh: DeviceMesh | None, call: Callable[[], Result]) -> list[Result]:
    """Calls it on each rank of the mesh; returns the results of all, in the order of the mesh.

    Where it raises on one, it raises on all. Without a mesh it is this process alone.
    """
    if mesh is None:
        return [call()]
    failure: Exception | None = None
    result: Result | None = None
    try:
        result = call()
    except Exception as raised:  # whatever it is: the others wait
        failure = raised
    outcomes = _gather(mesh, (dist.get_rank(), result, failure))
    if failure is not None:
        raise failure
    for rank, _, error in outcomes:
        if error is not None:
            raise type(error)(f"rank {rank}: {error}")
    return [cast(Result, result) for _, result, _ in outcomes]


def _gather(mesh: DeviceMesh, value: Result) -> list[Result]:
    gathered = [value]
    for dimension in reversed(range(mesh.ndim)):
        group = mesh.get_group(dimension)
        of_each: list[list[Result]] = [[] for _ in range(dist.get_world_size(group))]
        dist.all_gather_object(of_each, gathered, group=group)
        gathered = [one for those in of_each for one in those]
    return gathered
