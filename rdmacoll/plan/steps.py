"""A rank's plan as the compiled module gives it, and as lines. Pure.

csrc/plan/plan.h says what lanes, steps and operands are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rdmacoll.base.byte_sizes import text_of_size


@dataclass(frozen=True, slots=True)
class Operand:
    buffer: str  # input, output, slot, peer_slot, stage, peer_stage
    channel: int
    rank: int
    first: int  # block
    count: int  # of blocks
    bytes: int  # of the whole operation


@dataclass(frozen=True, slots=True)
class Step:
    kind: str  # wait, signal, copy, reduce
    counter: str  # data, credit; empty of what moves bytes
    channel: int
    peer: int
    finishes: bool
    first: int
    count: int
    sources: list[Operand]
    destinations: list[Operand]

    @property
    def moves(self) -> bool:
        return not self.counter

    @property
    def is_message(self) -> bool:
        return self.kind == "signal" and self.counter == "data"

    @property
    def is_token(self) -> bool:
        return self.counter == "data" and self.count == 0


@dataclass(frozen=True)
class RankPlan:
    rank: int
    blocks: int  # of the operation
    lanes: list[list[Step]]

    def steps(self) -> Iterator[Step]:
        for lane in self.lanes:
            yield from lane


def rank_plan(rank: int, blocks: int, lanes: Iterable[Iterable[Any]]) -> RankPlan:
    """Of what PlannedGroup.plan() says."""
    return RankPlan(rank, blocks, [[_step(step) for step in lane] for lane in lanes])


def _step(plain: Any) -> Step:
    *facts, sources, destinations = plain
    sides = ([Operand(*operand) for operand in side] for side in (sources, destinations))
    return Step(*facts, *sides)


def lines(plan: RankPlan) -> Iterator[str]:
    yield f"rank {plan.rank}"
    for number, lane in enumerate(plan.lanes):
        yield f"  lane {number}"
        yield from (f"    {_line(step)}" for step in lane)


def _line(step: Step) -> str:
    if not step.moves:
        what = "token" if step.count == 0 else "message" if step.counter == "data" else "credit"
        preposition = "to" if step.kind == "signal" else "from"
        return f"{step.kind:<7} {what} {preposition} rank {step.peer}, channel {step.channel}"
    verb = "finish" if step.finishes else step.kind
    sources = " + ".join(map(_operand, step.sources))
    destinations = ", ".join(map(_operand, step.destinations))
    return f"{verb:<7} {sources} -> {destinations}  {text_of_size(step.sources[0].bytes)}"


def _operand(operand: Operand) -> str:
    last = operand.first + operand.count - 1
    blocks = f"[{operand.first}]" if operand.count == 1 else f"[{operand.first}-{last}]"
    whose = {
        "input": "input",
        "output": "output",
        "stage": "stage",
        "slot": f"slot from {operand.rank} ",
        "peer_slot": f"slot at {operand.rank} ",
        "peer_stage": f"stage of {operand.rank} ",
    }
    return whose[operand.buffer] + blocks


def as_data(plan: RankPlan) -> dict[str, Any]:
    return {"rank": plan.rank, "lanes": [[_step_data(step) for step in x] for x in plan.lanes]}


def _step_data(step: Step) -> dict[str, Any]:
    if not step.moves:
        return {
            "kind": step.kind,
            "counter": step.counter,
            "peer": step.peer,
            "channel": step.channel,
            "blocks": [step.first, step.count],
        }
    return {
        "kind": step.kind,
        "finishes": step.finishes,
        "sources": [_operand_data(operand) for operand in step.sources],
        "destinations": [_operand_data(operand) for operand in step.destinations],
    }


def _operand_data(operand: Operand) -> dict[str, Any]:
    data: dict[str, Any] = {"buffer": operand.buffer}
    if operand.buffer not in ("input", "output"):
        data["channel"] = operand.channel
    if operand.buffer in ("slot", "peer_slot", "peer_stage"):
        data["rank"] = operand.rank
    return data | {"blocks": [operand.first, operand.count], "bytes": operand.bytes}
