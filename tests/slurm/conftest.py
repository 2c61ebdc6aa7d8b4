"""The fixture `cluster` of the tests with a real Slurm.

Floor: tests.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, missing_programs


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if missing := missing_programs():
        pytest.skip(f"no Slurm here, lacking {', '.join(missing)}: run .ci/system-packages-slurm")
    if os.geteuid() != 0:
        pytest.skip("a Slurm cluster in namespaces needs root")
    folder = Path(tempfile.mkdtemp(prefix="rdmacoll-slurm."))  # short: munged's socket lies there
    try:
        cluster = Cluster(folder)
        yield cluster
        cluster.close()
    finally:
        shutil.rmtree(folder)
