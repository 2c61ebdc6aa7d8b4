"""Tables of servers, pushed to and pulled by all workers of a job: kv_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import balance_cases
import kv_cases
import pytest
from case_job import Outcomes, cases_of
from job_runner import clean_jobs


@pytest.fixture(
    scope="module", params=[(1, 1), (2, 3), (3, 2)], ids=lambda numbers: "{}w{}s".format(*numbers)
)
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcomes]:
    folder: Path = tmp_path_factory.mktemp("job")
    with clean_jobs(folder) as jobs:
        yield Outcomes(jobs, kv_cases, *request.param)


@pytest.mark.parametrize("case", cases_of(kv_cases))
def test_kv(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


@pytest.fixture(scope="module")
def balanced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, balance_cases, workers=2, servers=2)


@pytest.mark.parametrize("case", cases_of(balance_cases))
def test_balance(balanced: Outcomes, case: str) -> None:
    balanced.check(case)
