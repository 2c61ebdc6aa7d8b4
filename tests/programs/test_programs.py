"""Random programs: seeds that never change, others every day, and many at night; and mistakes that
are planted, which programs must find.

`RDMACOLL_NIGHTLY=1 pytest -m nightly tests/programs` runs 100,000 operations.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
WORLDS = (1, 2, 3, 4, 5)
DEADLINE_S = 280
FIXED_SEED = 1
FIXED_PROGRAMS = 12
DAILY_S = 6.0  # of each world
NIGHTLY_OPERATIONS = 100_000
NIGHTLY_PROGRAMS = 100  # at a time
NIGHTLY_DEADLINE_S = 2 * 3600


def run(
    *, seed: int, world: int, programs: int, deadline_s: float = DEADLINE_S, **options: object
) -> tuple[int, int, str]:
    """Exit status, operations, output."""
    command = [sys.executable, str(RUN), f"--seed={seed}", f"--world={world}"]
    command += [f"--programs={programs}"]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=deadline_s,
        check=False,
    )
    counted = re.search(r"(\d+) operations, \d+ failures", done.stdout)
    assert counted, done.stdout
    return done.returncode, int(counted[1]), done.stdout


@pytest.mark.parametrize("world", WORLDS)
def test_fixed(world: int) -> None:
    status, operations, output = run(seed=FIXED_SEED, world=world, programs=FIXED_PROGRAMS)
    assert status == 0, output
    assert operations > 20 * FIXED_PROGRAMS


@pytest.mark.parametrize("world", WORLDS)
def test_of_the_day(world: int) -> None:
    seed = int(datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))
    print(f"programs of seed {seed}")
    status, operations, output = run(seed=seed, world=world, programs=10_000, seconds=DAILY_S)
    assert status == 0, output
    assert operations > 0


@pytest.mark.parametrize("mistake", ["flip", "drop", "delay"])
def test_planted_mistakes_are_found(mistake: str) -> None:
    """Wrong results by an assertion, an operation left out by a mismatch or a timeout."""
    status, _, output = run(seed=7, world=2, programs=6, plant=mistake, timeout_s=3, program_s=40)
    assert status == 1, output
    failures = re.findall(r"^FAILED seed=7 program=\d+ world=2 rank=\d .*", output, re.M)
    assert any(" all_reduce " in line for line in failures), output


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_DEADLINE_S)
def test_many() -> None:
    seed = int(datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))
    operations, first = 0, 0
    while operations < NIGHTLY_OPERATIONS:
        for world in WORLDS:
            status, some, output = run(
                seed=seed,
                world=world,
                programs=NIGHTLY_PROGRAMS,
                first=first,
                deadline_s=NIGHTLY_DEADLINE_S,
            )
            assert status == 0, output
            operations += some
        first += NIGHTLY_PROGRAMS
