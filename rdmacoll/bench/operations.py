"""What there is to measure, and how bytes are counted. Loads no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class InPlace(Enum):
    ONLY = "c10d has no other form"
    CHOICE = "the one tensor may be a part of the other"
    NEVER = "c10d has no such form"


@dataclass(frozen=True)
class Operation:
    name: str
    bus: Callable[[int], float]  # busbw / algbw on n ranks, as nccl-tests defines it
    of_parts: bool  # its size is that of all ranks' parts together
    in_place: InPlace


def _one(_: int) -> float:
    return 1.0


def _others(ranks: int) -> float:
    """What of all parts is another rank's."""
    return (ranks - 1) / ranks


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("all_reduce", lambda n: 2 * _others(n), False, InPlace.ONLY),
        Operation("broadcast", _one, False, InPlace.ONLY),
        Operation("reduce", _one, False, InPlace.ONLY),
        Operation("all_gather", _others, True, InPlace.CHOICE),
        Operation("reduce_scatter", _others, True, InPlace.CHOICE),
        Operation("all_to_all", _others, True, InPlace.NEVER),
        Operation("gather", _others, True, InPlace.NEVER),
        Operation("scatter", _others, True, InPlace.NEVER),
        Operation("send_recv", _one, False, InPlace.NEVER),
        Operation("barrier", _one, False, InPlace.ONLY),
    )
}


def elements_of(operation: Operation, size_bytes: int, element_bytes: int, ranks: int) -> int:
    """How many elements come nearest to the size; every rank's part is as large as the others'."""
    if operation.name == "barrier":
        return 0
    parts = ranks if operation.of_parts else 1
    return max(1, size_bytes // element_bytes // parts) * parts
