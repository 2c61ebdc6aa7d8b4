"""What KV refuses, in a job and without one: refusal_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import refusal_cases
from case_job import Outcomes, cases_of
from job_runner import clean_jobs

from rdmacoll import ps


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, refusal_cases, workers=2, servers=1)


@pytest.mark.parametrize("case", cases_of(refusal_cases))
def test_refusals(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


@pytest.mark.parametrize("said", ["", "0", "two", "-1"])
def test_without_servers(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("RDMACOLL_SERVERS", said)
    with pytest.raises(ValueError, match="no servers; start it with rdmarun --servers"):
        ps.KV()


def test_without_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDMACOLL_SERVERS", "1")
    with pytest.raises(ValueError, match="there is no process group"):
        ps.connect(timeout=10)
