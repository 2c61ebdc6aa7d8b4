"""Programs that know files work at both faces of the job's files: known_cases.py, by two ranks.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import known_cases
import pytest
from case_job import Outcomes, cases_of
from fuse import check_fuse
from job_runner import clean_jobs

from rdmacoll.base.mount_folder import is_mount_of_ours


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    check_fuse()
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, known_cases, 2, 2, ["--mount", "mounted"])
    assert not is_mount_of_ours(str(jobs.folder / "mounted"))


@pytest.mark.parametrize("case", cases_of(known_cases))
def test_known_programs(worked: Outcomes, case: str) -> None:
    worked.check(case)
