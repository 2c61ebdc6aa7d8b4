"""Runs programs, one after the other, on one rank of a world.

A wrong result is noted and the program goes on; an unexpected error ends it.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch"))

import draw
import operation
import planted
import refusals
import torch.distributed as dist
from messages import Ending
from program import (
    WORLD_GROUP,
    Burst,
    Destroy,
    Group,
    Make,
    Mismatch,
    Op,
    Part,
    Program,
    Refuse,
    Renew,
    Step,
    Threads,
)
from world import client_store  # type: ignore[import-not-found]

import rdmacoll

LANE_S = 100.0

_generation = 0
_timeout = datetime.timedelta(seconds=30)


def enter(environment: dict[str, str], timeout_s: float, plant: str) -> None:
    """The first thing a rank does."""
    global _timeout
    os.environ.update(environment)
    _timeout = datetime.timedelta(seconds=timeout_s)
    planted.plant(plant)
    _init()


def run(seed: int, number: int) -> list[str]:
    """What was wrong in this program on this rank. An error that ended it is raised, and names the
    operation."""
    program = draw.program(seed, number, int(os.environ["WORLD_SIZE"]))
    runner = Runner(program, int(os.environ["RANK"]))
    runner.run()
    return runner.wrong


def _init() -> None:
    global _generation
    _generation += 1
    dist.init_process_group(
        "rdma",
        store=dist.PrefixStore(f"generation{_generation}", client_store()),
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=_timeout,
    )


class ProgramError(Exception):
    """An unexpected error, with the operation that raised it."""


@dataclass
class Pending:
    op: Op
    due: int
    end: Ending


class Runner:
    def __init__(self, program: Program, rank: int) -> None:
        self.program = program
        self.rank = rank
        self.wrong: list[str] = []
        self._groups: dict[int, Any] = {}
        self._twins: dict[int, Any] = {}
        self._pending: list[Pending] = []
        self._shared = operation.Shared()
        self._rng = random.Random(f"{program}/{rank}")
        self._now = 0
        self._dropped = {
            op.group.number
            for op in program.operations()
            if any(part.mode == "drop" for part in op.parts)
        }

    def run(self) -> None:
        with contextlib.ExitStack() as stack:
            placement = None
            if self.rank in self.program.traced:
                placement = stack.enter_context(rdmacoll.trace_placement(least_bytes=64))
            for number, step in enumerate(self.program.steps):
                self._now = number
                self._step(step)
                self._end([p for p in self._pending if p.due <= self._now])
                if placement is not None:
                    placement.step()
            self._end(list(self._pending))
        left = [*self._groups]
        if not self._dropped:
            self._rng.shuffle(left)
        for number in left:
            self._destroy(number)

    def _step(self, step: Step) -> None:
        match step:
            case Make():
                self._make(step.group)
            case Destroy():
                self._end([p for p in self._pending if p.op.group == step.group])
                self._destroy(step.group.number)
            case Renew():
                self._end(list(self._pending))
                for number in sorted(self._dropped & self._groups.keys()):
                    dist.barrier(self._groups[number])
                self._groups.clear()
                self._twins.clear()
                dist.destroy_process_group()
                _init()
            case Burst():
                self._burst(step)
            case Threads():
                self._threads(step)
            case Refuse():
                self._refuse(step)
            case Mismatch():
                self._mismatch(step)

    # --- groups -----------------------------------------------------------------------------------

    def _make(self, group: Group) -> None:
        options = rdmacoll.Options(algorithm=group.algorithm) if group.algorithm else None
        made: Any = dist.group.WORLD
        if group.number != WORLD_GROUP:
            made = dist.new_group(
                list(group.ranks),
                timeout=_timeout,
                backend="rdma",
                pg_options=options,
            )
        twin = dist.new_group(list(group.ranks), _timeout, "gloo") if group.gloo else None
        if self.rank in group.ranks:
            self._groups[group.number] = made
            if twin is not None:
                self._twins[group.number] = twin

    def _destroy(self, number: int) -> None:
        group, twin = self._groups.pop(number, None), self._twins.pop(number, None)
        if group is not None and number in self._dropped:
            dist.barrier(group)  # for what nobody waits for: destroying waits 2 s for it at most
        for made in (group, twin):
            if made is not None and made is not dist.group.WORLD:
                dist.destroy_process_group(made)

    # --- operations -------------------------------------------------------------------------------

    def _burst(self, burst: Burst) -> None:
        ops = [op for op in burst.ops if self.rank in op.group.ranks]
        for op in self._shuffled(ops) if burst.shuffled else ops:
            after = op.parts[op.group.ranks.index(self.rank)].after
            self._pending.append(Pending(op, self._now + after, self._start(op)))
            if op.gloo:
                self._compare_with_gloo(op)

    def _shuffled(self, ops: Sequence[Op]) -> list[Op]:
        """Operations of different groups change places; those of one group stay in order."""
        slots = [op.group.number for op in ops]
        self._rng.shuffle(slots)
        queues = {n: [op for op in ops if op.group.number == n] for n in slots}
        return [queues[number].pop(0) for number in slots]

    def _start(self, op: Op) -> Ending:
        try:
            me = op.group.ranks.index(self.rank)
            time.sleep(op.parts[me].late_ms / 1000)
            return operation.start(op, self._groups[op.group.number], me, self._shared)
        except Exception as error:
            raise ProgramError(f"{op}: {error!r}") from error

    def _end(self, due: list[Pending]) -> None:
        self._rng.shuffle(due)
        self._pending = [p for p in self._pending if all(p is not other for other in due)]
        for pending in due:
            self._finish(pending.op, pending.end)

    def _finish(self, op: Op, end: Ending) -> None:
        try:
            self.wrong += [self._line(f"{op}: {text}") for text in end()]
        except Exception as error:
            raise ProgramError(f"{op}: {error!r}") from error

    def _line(self, text: str) -> str:
        return f"{self.program} rank={self.rank} {text}"

    def _compare_with_gloo(self, op: Op) -> None:
        me = op.group.ranks.index(self.rank)
        op = replace(op, dims=1)  # gloo wants equal shapes, too
        bound = operation.bind(op, me, Part())
        call = operation.calls.CALLS[op.kind]
        call(op, self._twins[op.group.number], bound.ins, bound.outs, False)
        if op.kind != "reduce":  # gloo may leave anything on ranks other than the root
            said = operation.check(bound)
            self.wrong += [self._line(f"{op}: gloo gives something else: {text}") for text in said]

    def _threads(self, step: Threads) -> None:
        failures: list[BaseException] = []

        def run(ops: list[Op]) -> None:
            try:
                in_flight = []
                for op in ops:
                    end = self._start(op)
                    if op.parts[op.group.ranks.index(self.rank)].mode == "block":
                        self._finish(op, end)
                    else:
                        in_flight.append((op, end))
                for op, end in in_flight:
                    self._finish(op, end)
            except BaseException as error:
                failures.append(error)

        lanes = [[op for op in lane if self.rank in op.group.ranks] for lane in step.lanes]
        threads = [threading.Thread(target=run, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LANE_S)
            assert not thread.is_alive(), f"a thread hangs in {step}"
        if failures:
            raise failures[0]

    # --- what must fail ---------------------------------------------------------------------------

    def _refuse(self, step: Refuse) -> None:
        if self.rank not in step.group.ranks:
            return
        me = step.group.ranks.index(self.rank)
        if me not in step.members:
            return
        group = self._groups[step.group.number]
        if said := refusals.refuse(step.what, group, me, step.group.size):
            self.wrong.append(self._line(f"{step.what!r} in group {step.group.ranks}: {said}"))

    def _mismatch(self, step: Mismatch) -> None:
        group = dist.new_group(list(step.group.ranks), timeout=_timeout, backend="rdma")
        if self.rank not in step.group.ranks:
            return
        group.set_timeout(refusals.THROW_AWAY_TIMEOUT)
        if said := refusals.mismatch(step.what, group, step.group.ranks.index(self.rank)):
            self.wrong.append(self._line(f"mismatch of {step.what!r} in {step.group}: {said}"))
        dist.destroy_process_group(group)
