"""Modules of rows whose workers wait for each other: row_pace_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import row_bits_case
import row_pace_cases
from case_job import Outcomes, cases_of
from job_runner import clean_jobs


@pytest.fixture(
    scope="module",
    params=[(1, 1), (2, 3), (3, 2), pytest.param((4, 2), marks=pytest.mark.nightly)],
    ids=lambda numbers: "{}w{}s".format(*numbers),
)
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, row_pace_cases, *request.param)


@pytest.mark.parametrize("case", cases_of(row_pace_cases))
def test_row_paces(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


@pytest.mark.nightly
def test_bits_are_the_same_in_each_run(tmp_path: Path) -> None:
    """With any number of servers."""
    bits = set()
    for run, servers in enumerate((1, 2, 3, 1)):
        folder = tmp_path / str(run)
        folder.mkdir()
        with clean_jobs(folder) as jobs:
            outcomes = Outcomes(jobs, row_bits_case, 2, servers)
            for case in cases_of(row_bits_case):
                outcomes.check(case)
        bits |= {(folder / f"bits.{rank}").read_text() for rank in range(2)}
    assert len(bits) == 1
