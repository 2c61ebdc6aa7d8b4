"""What trace_placement() tells: what it has placed, what not and why, as data and for people."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from rdmacoll.base.byte_sizes import text_of_size


@dataclass(frozen=True)
class Traced:
    """A storage that met operations. `reason` says why it is not in the heap, where it is not."""

    name: str
    bytes: int
    operations: int
    reason: str = ""


@dataclass(frozen=True)
class PlacementReport:
    placed: list[Traced]
    left: list[Traced]
    freed: dict[int, int]  # bytes of tensors that did not live on: how many there were
    served: list[int]  # those of these sizes that come from the heap when they are made again

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"placed in the heap: {_sum(self.placed)}"
        for one in self.placed:
            yield f"{text_of_size(one.bytes):>11}  {one.name}, in {one.operations} operations"
        yield f"made in the heap, as they do not live on: those of {len(self.served)} size(s)"
        for size in self.served:
            yield f"{text_of_size(size):>11}  {self.freed[size]} so far"
        yield f"left where they are: {_sum(self.left)}"
        for one in self.left:
            yield f"{text_of_size(one.bytes):>11}  {one.name}: {one.reason}"
        rest = {size: count for size, count in self.freed.items() if size not in self.served}
        if rest:
            most = f"{text_of_size(max(rest))} and less"
            why = "too small, or too many sizes"
            yield f"{most:>11}  {sum(rest.values())} that do not live on, and are not served: {why}"


def _sum(traced: list[Traced]) -> str:
    return f"{len(traced)} tensor(s), {text_of_size(sum(one.bytes for one in traced))}"


def names_of(model: torch.nn.Module | None) -> dict[int, str]:
    """By the address of a storage, what of the model lies in it."""
    names: dict[int, list[str]] = {}
    for name, tensor in _tensors_of(model) if model is not None else ():
        local = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
        if local.layout == torch.strided:
            names.setdefault(local.untyped_storage().data_ptr(), []).append(name)
    return {
        address: these[0] + (f" and {len(these) - 1} more" if len(these) > 1 else "")
        for address, these in names.items()
    }


def _tensors_of(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    found: list[tuple[str, torch.Tensor]] = []
    for name, parameter in model.named_parameters():
        found.append((f"parameter {name}", parameter.detach()))
        if parameter.grad is not None:
            found.append((f"gradient of {name}", parameter.grad))
    return found + [(f"buffer {name}", buffer) for name, buffer in model.named_buffers()]
