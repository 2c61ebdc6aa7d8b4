"""Runs the simulation over many seeds, on all cores, and sums up what they covered.

    python tests/sim/run.py --seeds 2000               seeds 1 to 2000 of every test
    python tests/sim/run.py --seeds 2000 --part 1/4    a quarter of these
    python tests/sim/run.py --seed 4711                one seed again

A seed that fails is named with what it takes to replay it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from parts import Part, part

CHUNK_SEEDS = 125
CHUNK_LIMIT_S = 900  # of one process; its own bounds are in virtual time
SUMMARY = re.compile(
    r"^((?:scripts|soaks|streams|faults|placements|mismatches|shrinkings|standstills|servers|paces"
    r"|names)"
    r"(?: on hosts)?): (.*)$",
    re.MULTILINE,
)
TESTS = (
    "Simulation.*:Streams.*:DirectPlacement.*:Shrinking.*:Standstills.*:Hosts.*:"
    "ParameterServer.*:Names.*"
)


def run(program: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, f"--gtest_filter={TESTS}", "--gtest_brief=1"],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=CHUNK_LIMIT_S,
        check=False,
    )


def numbers(text: str) -> Counter[str]:
    """Of "3 seeds, 4 deaths": how many of what."""
    fields = (entry.split(" ", 1) for entry in text.split(", "))
    return Counter({what: int(count) for count, what in fields})


def run_all(program: str, seeds: int, wanted: Part) -> None:
    began = time.monotonic()
    firsts = wanted.of(range(1, seeds + 1, CHUNK_SEEDS))
    covered: dict[str, Counter[str]] = {}

    def chunk(first: int) -> subprocess.CompletedProcess[str]:
        count = min(CHUNK_SEEDS, seeds + 1 - first)
        environment = {"RDMACOLL_SIM_FIRST": str(first), "RDMACOLL_SIM_SEEDS": str(count)}
        return run(program, environment)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for ran in pool.map(chunk, firsts):
            if ran.returncode != 0:
                pool.shutdown(wait=False, cancel_futures=True)
                raise SystemExit(f"{ran.stdout}\nthe simulation failed, status {ran.returncode}")
            for test, text in SUMMARY.findall(ran.stdout):
                covered.setdefault(test, Counter()).update(numbers(text))
    if not covered:
        raise SystemExit("the simulation said nothing of what it covered")
    for test, counts in covered.items():
        print(f"{test}: " + ", ".join(f"{count:,} {what}" for what, count in counts.items()))
    total = sum(counts["seeds"] for counts in covered.values())
    print(f"{total:,} schedules in {time.monotonic() - began:.0f} s, 0 failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/cpp")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seeds", type=int, help="run seeds 1 to this one")
    which.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument(
        "--part", type=part, default=Part(), metavar="K/N", help=f"of them, by {CHUNK_SEEDS}"
    )
    arguments = parser.parse_args()
    program = os.path.join(arguments.build, "sim_test")
    if arguments.seed is None:
        run_all(program, arguments.seeds, arguments.part)
        return
    ran = run(program, {"RDMACOLL_SIM_SEED": str(arguments.seed)})
    print(ran.stdout)
    sys.exit(ran.returncode)


if __name__ == "__main__":
    main()
