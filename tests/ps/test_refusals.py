"""What KV refuses, in a job and without one: refusal_cases.py.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import refusal_cases
from case_job import Outcomes, cases_of
from job_runner import Jobs, clean_jobs

from rdmacoll import ps


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, refusal_cases, workers=2, servers=1)


@pytest.mark.parametrize("case", cases_of(refusal_cases))
def test_refusals(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


def test_without_servers(jobs: Jobs) -> None:
    text = """
        from rdmacoll import ps

        try:
            ps.KV()
        except ValueError as error:
            print(error)
    """
    done = jobs.run_script(text, "-np", "1")
    assert "the job has no servers; start it with rdmarun --servers 1, or more" in done.stdout


def test_without_a_group() -> None:
    with pytest.raises(ValueError, match="there is no process group"):
        ps.connect(timeout=10)
