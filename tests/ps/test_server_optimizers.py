"""Optimizers at the server: optimizer_cases.py.

Floor: tests.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import optimizer_cases
import pytest
import torch
from case_job import Outcomes, cases_of
from job_runner import clean_jobs

from rdmacoll import ps


@pytest.fixture(scope="module", params=["default", ""], ids=["no vectors", "as it comes"])
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcomes]:
    env = {"ATEN_CPU_CAPABILITY": request.param} if request.param else {}
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, optimizer_cases, workers=1, servers=1, **env)


@pytest.mark.parametrize("case", cases_of(optimizer_cases))
def test_optimizers(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "Adam", "AdamW"])
def test_defaults_are_those_of_torch(name: str) -> None:
    theirs = inspect.signature(getattr(torch.optim, name)).parameters
    ours: Any = getattr(ps, name)
    for field in dataclasses.fields(ours):
        assert field.default == theirs[field.name].default, field.name
