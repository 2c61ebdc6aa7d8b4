"""Random programs: of a fixed seed, of another seed every day, and many of them at night. And
mistakes that are planted, which programs must find.

`RDMACOLL_NIGHTLY=1 pytest -m nightly tests/programs` runs 100,000 operations.
"""

from __future__ import annotations

import datetime
import os
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
DAILY_S = 3  # of each world
NIGHTLY_OPERATIONS = 100_000
NIGHTLY_PROGRAMS = 100  # of each world, at a time
NIGHTLY_DEADLINE_S = 2 * 3600


def seed_of_the_day() -> int:
    return int(datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))


def run(
    *, seed: int, worlds: tuple[int, ...], deadline_s: float = DEADLINE_S, **options: object
) -> tuple[int, int, str]:
    """Exit status, operations, output."""
    command = [sys.executable, str(RUN), f"--seed={seed}", "--world", *map(str, worlds)]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=deadline_s,
        check=False,
        env=_as_by_hand(),
    )
    print(done.stdout)
    counted = re.search(r"^all: \d+ programs, (\d+) operations", done.stdout, re.M)
    return done.returncode, int(counted[1]) if counted else 0, done.stdout


def _as_by_hand() -> dict[str, str]:
    """Without settings that other tests have made, with which a failure could not be repeated."""
    return {k: v for k, v in os.environ.items() if not k.startswith("RDMACOLL_")}


def test_fixed() -> None:
    status, operations, _ = run(seed=FIXED_SEED, worlds=WORLDS, programs=FIXED_PROGRAMS)
    assert status == 0
    assert operations > 20 * FIXED_PROGRAMS * len(WORLDS)


def test_of_the_day() -> None:
    """The seed is in the output, and in the line of each failure."""
    status, operations, _ = run(
        seed=seed_of_the_day(), worlds=WORLDS, programs=10_000, seconds=DAILY_S
    )
    assert status == 0
    assert operations > 0


@pytest.mark.parametrize("mistake", ["flip", "drop", "delay"])
def test_planted_mistakes_are_found(mistake: str) -> None:
    status, _, output = run(
        seed=7, worlds=(2,), programs=3, plant=mistake, timeout_s=3, program_s=40
    )
    assert status == 1
    failures = re.findall(r"^FAILED seed=7 program=\d+ world=2 rank=\d .*", output, re.M)
    assert any(" all_reduce " in line for line in failures)


def test_what_hangs_says_where() -> None:
    _, _, output = run(seed=7, worlds=(2,), programs=3, plant="hang", timeout_s=3, program_s=40)
    assert re.search(r"^FAILED seed=7 program=\d+ world=2 rank=1 hung", output, re.M)
    assert "planted.py" in output


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_DEADLINE_S)
def test_many() -> None:
    operations, first = 0, 0
    while operations < NIGHTLY_OPERATIONS:
        status, some, _ = run(
            seed=seed_of_the_day(),
            worlds=WORLDS,
            first=first,
            programs=NIGHTLY_PROGRAMS,
            deadline_s=NIGHTLY_DEADLINE_S,
        )
        assert status == 0
        assert some > 0
        operations += some
        first += NIGHTLY_PROGRAMS
