"""Jobs of these tests.

Floor: tests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from job_runner import Jobs, clean_jobs


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with clean_jobs(tmp_path) as jobs:
        yield jobs
