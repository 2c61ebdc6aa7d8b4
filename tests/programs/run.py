"""Random distributed programs on the backend rdma, every result compared with plain math.

    python tests/programs/run.py --seed 1 --programs 1000 --world 3

One line per failure names seed, program, rank and operation; `--seed N --first K --programs 1` with
the same world runs that program again. Ranks are started here; some programs in a row share them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch"))
os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported here or in the fork server
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import draw
import planted
import rank
from world import World  # type: ignore[import-not-found]

TOGETHER = 40  # programs in one set of processes
START_S = 120.0
PROGRAM_S = 150.0  # the deadline of one program


@dataclass
class Tally:
    programs: int = 0
    operations: int = 0
    failures: list[str] = field(default_factory=list)

    def fail(self, text: str) -> None:
        self.failures.append(text)
        print(f"FAILED {text}", flush=True)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.operations += other.operations
        self.failures += other.failures

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.operations} operations, {len(self.failures)} failures"
        )


class Driver:
    """Runs programs in worlds of one size."""

    def __init__(self, options: argparse.Namespace, world: int, tally: Tally) -> None:
        self._options = options
        self._size = world
        self._world: World | None = None
        self._together = -1
        self.tally = tally

    def run(self, number: int) -> None:
        program = draw.program(self._options.seed, number, self._size)
        self.tally.programs += 1
        self.tally.operations += len(program.operations())
        world = self._ranks_for(number)
        if world is None:
            return
        arguments = {"seed": self._options.seed, "number": number}
        outcomes = world.run(rank.run, arguments, self._options.program_s)
        for index, outcome in enumerate(outcomes):
            for line in outcome.value if outcome.kind == "ok" else ():
                self.tally.fail(line)
            if outcome.kind != "ok":
                self.tally.fail(
                    f"{program} rank={index} {outcome.kind}: {_last_line(outcome.text)}"
                )
                print(outcome.text, flush=True)
        if any(outcome.kind != "ok" for outcome in outcomes):
            self._kill()

    def close(self) -> None:
        if self._world is None:
            return
        codes = self._world.close()
        self._world = None
        if any(code != 0 for code in codes):
            self.tally.fail(f"seed={self._options.seed} ranks ended with {codes}")

    def _ranks_for(self, number: int) -> World | None:
        """Programs with the same environment share their processes."""
        together = number // TOGETHER
        if self._world is not None and self._together == together:
            return self._world
        self.close()
        self._together = together
        settings = draw.environment(self._options.seed, together)
        world = World(self._size, init=False)
        arguments = {
            "environment": settings,
            "timeout_s": self._options.timeout_s,
            "plant": self._options.plant,
        }
        self._world = world
        for index, outcome in enumerate(world.run(rank.enter, arguments, START_S)):
            if outcome.kind != "ok":
                self.tally.fail(f"seed={self._options.seed} rank={index} did not start: {settings}")
                print(outcome.text, flush=True)
                self._kill()
                return None
        return world

    def _kill(self) -> None:
        if self._world is not None:
            self._world.kill()
        self._world = None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def numbers(options: argparse.Namespace) -> Iterator[int]:
    ends = time.monotonic() + options.seconds
    for number in range(options.first, options.first + options.programs):
        if time.monotonic() > ends:
            return
        yield number


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0, help="the first program's number")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--world", type=int, nargs="+", default=[2, 3], help="sizes, in turn")
    parser.add_argument("--seconds", type=float, default=1e9, help="of each world, at most")
    parser.add_argument("--timeout-s", type=float, default=30.0, help="of the groups")
    parser.add_argument("--program-s", type=float, default=PROGRAM_S)
    parser.add_argument("--plant", choices=planted.MISTAKES, default="")
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    return parser.parse_args()


def show(options: argparse.Namespace) -> None:
    for world in options.world:
        for number in numbers(options):
            program = draw.program(options.seed, number, world)
            print(program, *program.steps, sep="\n  ")


def run(options: argparse.Namespace) -> Tally:
    all_worlds = Tally()
    for world in options.world:
        began = time.monotonic()
        tally = Tally()
        driver = Driver(options, world, tally)
        for number in numbers(options):
            driver.run(number)
        driver.close()
        print(
            f"seed={options.seed} world={world}: {tally}, {time.monotonic() - began:.1f} s",
            flush=True,
        )
        all_worlds.add(tally)
    return all_worlds


def main() -> int:
    options = parsed()
    if options.show:
        show(options)
        return 0
    tally = run(options)
    print(f"all: {tally}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
