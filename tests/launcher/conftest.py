"""The fixture `jobs` of all tests of rdmarun.

Floor: tests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from job_runner import SHM, Jobs, shm_files_of_nobody, wait_for


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    """No job of a test may leave a process or a shared-memory file behind."""
    shm_before = set(SHM.iterdir())
    jobs = Jobs(tmp_path)
    yield jobs
    try:
        jobs.assert_none_left()
    finally:
        jobs.kill_all()
    wait_for(lambda: not shm_files_of_nobody(shm_before), "the end of files in /dev/shm")
