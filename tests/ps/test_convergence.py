"""Trainings with servers come to what they come to in one process: recommender_cases.py and
digits_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import digits_cases
import pytest
import recommender_cases
import torch
from case_job import Outcomes, cases_of
from job_runner import clean_jobs
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def recommended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, recommender_cases, workers=2, servers=2)


@pytest.fixture(
    scope="module",
    params=[2, *(pytest.param(workers, marks=pytest.mark.nightly) for workers in (1, 3, 4))],
    ids="{} workers".format,
)
def learned(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcomes]:
    source = load_digits()
    images = torch.tensor(source.data, dtype=torch.float32) / 16
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        torch.save((images, torch.tensor(source.target)), jobs.folder / digits_cases.FILE)
        servers = 2 if request.param < 3 else 1  # there may be no more than two cores
        yield Outcomes(jobs, digits_cases, request.param, servers)


@pytest.mark.parametrize("case", cases_of(recommender_cases))
def test_recommender(recommended: Outcomes, case: str) -> None:
    recommended.check(case)


@pytest.mark.parametrize("case", cases_of(digits_cases))
def test_digits(learned: Outcomes, case: str) -> None:
    learned.check(case)
