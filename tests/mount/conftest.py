"""A job whose files are mounted: one that tests share, or one of their own.

Floor: tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from mounted_job import Mounted, job_of_its_own


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    with job_of_its_own(tmp_path_factory.mktemp("job")) as mounted:
        yield mounted


@pytest.fixture
def mounted(job: Mounted) -> Iterator[Mounted]:
    """A job that tests share, and leave without files."""
    yield job
    for one in job.folder.iterdir():
        shutil.rmtree(one) if one.is_dir() else one.unlink()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Mounted]:
    """One that a test may break."""
    with job_of_its_own(tmp_path) as mounted:
        yield mounted
