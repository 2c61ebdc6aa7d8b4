"""Tensors of a GPU, pretended where there is none: staging_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import staging_cases
from case_job import Outcomes, cases_of
from job_runner import clean_jobs


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, staging_cases, workers=2, servers=2)


@pytest.mark.parametrize("case", cases_of(staging_cases))
def test_staging(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)
