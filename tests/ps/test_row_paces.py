"""Modules of rows whose workers wait for each other: row_pace_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
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
