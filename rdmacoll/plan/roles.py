"""What a rank does as few statements, and which ranks do the same. Pure.

A statement is all of a plan's copies, or folds, that lead from and to the same kinds of places:
waits and signals follow from these. A plan that moves nothing is its tokens instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from .steps import Operand, RankPlan, Step

# Where an operand is, in the order in which sentences name them. "near" is of another rank of the
# host, "far" of one of another host, "self" what the rank sends to itself.
PLACES = (
    "input",
    "slot self",
    "peer_stage near",
    "slot near",
    "slot far",
    "output",
    "stage",
    "peer_slot self",
    "peer_slot near",
    "peer_slot far",
)
OWN = ("input", "output", "stage")


class Move(NamedTuple):
    """A copy or a fold: its operands by place."""

    sources: dict[str, list[Operand]]
    destinations: dict[str, list[Operand]]
    bytes: int
    blocks: range


Kind = tuple[str, tuple[str, ...], tuple[str, ...]]  # verb, places of sources, of destinations


@dataclass(frozen=True)
class Statement:
    kind: Kind
    moves: list[Move]
    peers: list[int]  # of tokens


@dataclass
class Role:
    statements: list[Statement]  # of the first of the ranks
    ranks: list[int] = field(default_factory=list)


def roles_of(plans: Iterable[RankPlan], host_of: Sequence[int]) -> list[Role]:
    """Those of the first ranks first."""
    roles: dict[tuple[Kind, ...], Role] = {}
    for plan in plans:
        statements = list(statements_of(plan, host_of))
        kinds = [statement.kind for statement in statements]
        ordered = not any(statement.moves for statement in statements)
        key = tuple(kinds if ordered else sorted(kinds))  # lanes run beside each other
        roles.setdefault(key, Role(statements)).ranks.append(plan.rank)
    return list(roles.values())


def statements_of(plan: RankPlan, host_of: Sequence[int]) -> Iterator[Statement]:
    def nearness(other: int) -> str:
        if other == plan.rank:
            return "self"
        return "near" if host_of[other] == host_of[plan.rank] else "far"

    def by_place(operands: Iterable[Operand]) -> dict[str, list[Operand]]:
        places: dict[str, list[Operand]] = {}
        for operand in operands:
            own = operand.buffer in OWN
            place = operand.buffer if own else f"{operand.buffer} {nearness(operand.rank)}"
            places.setdefault(place, []).append(operand)
        return {place: places[place] for place in PLACES if place in places}

    found: dict[Kind, list[Move]] = {}
    for step in plan.steps():
        if step.moves:
            sources, destinations = by_place(step.sources), by_place(step.destinations)
            verb = "finish" if step.finishes else step.kind
            moved = step.destinations[0]
            blocks = range(moved.first, moved.first + moved.count)
            kind = verb, tuple(sources), tuple(destinations)
            move = Move(sources, destinations, moved.bytes, blocks)
            found.setdefault(kind, []).append(move)
    yield from (Statement(kind, moves, []) for kind, moves in found.items())
    if found:
        return

    def kind_of(token: Step) -> Kind:
        return token.kind, (nearness(token.peer),), ()

    tokens = [step for step in plan.steps() if step.is_token]
    for kind, steps in groupby(tokens, kind_of):
        yield Statement(kind, [], [step.peer for step in steps])
