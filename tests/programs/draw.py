"""Draws programs: every rank draws the same one for the same seed, number and world.

All ranks follow one order of operations, except within bursts that may be shuffled, so that none
blocks another for ever. Not here: what is drawn about one operation (draw_op.py).
"""

from __future__ import annotations

import random

import draw_op
import refusals
from program import (
    WORLD_GROUP,
    Burst,
    Destroy,
    Group,
    Make,
    Mismatch,
    Op,
    Program,
    Refuse,
    Renew,
    Step,
    Threads,
)

ALGORITHMS = ("ring", "tree", "halving_doubling", "one_shot", "two_shot", "direct")
MOST_GROUPS = 4
BUDGET_BYTES = 3 << 20  # of all tensors of a program on all ranks
HUGE_BUDGET_BYTES = 200 << 20


def program(seed: int, number: int, world: int) -> Program:
    drawing = _Drawing(seed, number, world)
    return Program(seed, number, world, tuple(drawing.steps()), drawing.traced)


def environment(seed: int, number: int) -> dict[str, str]:
    """Variables of the processes that run this program, by which the engine takes other ways."""
    rng = random.Random(f"environment/{seed}/{number}")
    drawn: dict[str, str] = {}
    if rng.random() < 0.4:
        drawn["RDMACOLL_ALGO"] = rng.choice(ALGORITHMS)
    for name, chance, choices in (
        ("RDMACOLL_DETERMINISTIC", 0.2, ("1", "layout")),
        ("RDMACOLL_BLOCK_BYTES", 0.4, ("65536", "262144", "1048576")),
        ("RDMACOLL_HEAP_BYTES", 0.3, ("0", "65536", "4194304")),
        ("RDMACOLL_ZERO_COPY_LOCAL_BYTES", 0.6, ("1", "1024", "65536")),
        ("RDMACOLL_STORES", 0.4, ("cached", "streamed")),
        ("RDMACOLL_SPIN_US", 0.3, ("0", "50")),
        ("RDMACOLL_FLIGHT_RECORDS", 0.2, ("0", "4")),
        ("RDMACOLL_TRANSPORT", 0.1, ("shm",)),
    ):
        if rng.random() < chance:
            drawn[name] = rng.choice(choices)
    return drawn


class _Drawing:
    def __init__(self, seed: int, number: int, world: int) -> None:
        self._rng = random.Random(f"{seed}/{number}/{world}")
        self._world = world
        everyone = Group(WORLD_GROUP, tuple(range(world)), gloo=self._rng.random() < 0.15)
        self._groups = [everyone]
        self._made = 1
        traces = self._rng.random() < 0.1
        self.traced = tuple(rank for rank in range(world) if traces and self._rng.random() < 0.7)
        huge = self._rng.random() < 0.003
        budget = HUGE_BUDGET_BYTES if huge else BUDGET_BYTES
        self._ops = draw_op.Drawer(self._rng, budget, huge)

    def steps(self) -> list[Step]:
        rng = self._rng
        steps: list[Step] = [Renew()] if rng.random() < 0.02 else []
        steps.append(Make(self._groups[0]))
        steps += [self._make() for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        steps += [self._step() for _ in range(rng.randint(8, 20))]
        if rng.random() < 0.02:
            steps.append(Renew())
        return steps

    def _step(self) -> Step:
        rng = self._rng
        chance = rng.random()
        if chance < 0.03 and len(self._groups) < MOST_GROUPS:
            return self._make()
        if chance < 0.06 and len(self._groups) > 1:
            return Destroy(self._groups.pop(rng.randrange(1, len(self._groups))))
        if chance < 0.10 and len(self._groups) > 1:
            lanes = rng.sample(self._groups, min(len(self._groups), rng.choice((2, 2, 3))))
            return Threads(tuple(self._lane(group) for group in lanes))
        if chance < 0.16:
            return self._refuse()
        if chance < 0.165 and self._world > 1:
            ranks = self._some_ranks(2)
            return Mismatch(Group(-1, ranks), rng.choice(list(refusals.MISMATCHED)))
        if chance < 0.26:
            many = rng.choice((3, 8, 24, 70))
            ops = [self._ops.in_flight(self._group()) for _ in range(rng.randint(2, many))]
            return Burst(tuple(ops), shuffled=True)
        if chance < 0.30:
            return Burst(tuple(self._ops.of_one_input(self._group(), rng.randint(2, 4))))
        ops = [self._ops.any_kind(self._group()) for _ in range(rng.randint(1, 4))]
        return Burst(tuple(ops))

    def _lane(self, group: Group) -> tuple[Op, ...]:
        return tuple(self._ops.in_thread(group) for _ in range(self._rng.randint(1, 6)))

    def _group(self) -> Group:
        return self._rng.choice(self._groups)

    def _make(self) -> Make:
        rng = self._rng
        ranks = self._some_ranks(1)
        if rng.random() < 0.2:  # the same members again
            ranks = rng.choice(self._groups).ranks
        algorithm = rng.choice(ALGORITHMS) if rng.random() < 0.2 else ""
        group = Group(self._made, ranks, algorithm, gloo=rng.random() < 0.05)
        self._made += 1
        self._groups.append(group)
        return Make(group)

    def _some_ranks(self, least: int) -> tuple[int, ...]:
        count = self._rng.randint(least, self._world)
        return tuple(sorted(self._rng.sample(range(self._world), count)))

    def _refuse(self) -> Refuse:
        group = self._group()
        members = tuple(range(group.size))
        if self._rng.random() < 0.5:
            members = (self._rng.randrange(group.size),)
        return Refuse(group, self._rng.choice(list(refusals.REFUSED)), members)
