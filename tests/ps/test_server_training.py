"""Modules and optimizers with what servers hold: training_cases.py, pace_cases.py,
generation_cases.py, schedule_cases.py and embedding_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import embedding_cases
import generation_cases
import pace_cases
import pytest
import schedule_cases
import training_cases
from case_job import Outcomes, cases_of
from job_runner import clean_jobs


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, training_cases, workers=2, servers=2)


@pytest.fixture(scope="module")
def paced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, pace_cases, workers=3, servers=2)


@pytest.fixture(scope="module")
def renumbered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, generation_cases, workers=3, servers=2)


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, schedule_cases, workers=3, servers=2)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, embedding_cases, workers=2, servers=2)


@pytest.mark.parametrize("case", cases_of(training_cases))
def test_training(trained: Outcomes, case: str) -> None:
    trained.check(case)


@pytest.mark.parametrize("case", cases_of(pace_cases))
def test_in_step(paced: Outcomes, case: str) -> None:
    paced.check(case)


@pytest.mark.parametrize("case", cases_of(generation_cases))
def test_numbers_of_workers(renumbered: Outcomes, case: str) -> None:
    renumbered.check(case)


@pytest.mark.parametrize("case", cases_of(schedule_cases))
def test_schedules(scheduled: Outcomes, case: str) -> None:
    scheduled.check(case)


@pytest.mark.parametrize("case", cases_of(embedding_cases))
def test_embedding(embedded: Outcomes, case: str) -> None:
    embedded.check(case)
