"""The fixture `cluster` of the tests with a real Slurm.

Floor: tests.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import NODES, Cluster, missing_programs
from hosts import NoHosts
from hosts.stand import Hosts


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if missing := missing_programs():
        pytest.skip(f"no Slurm here, lacking {', '.join(missing)}: run .ci/system-packages-slurm")
    if os.geteuid() != 0:
        pytest.skip("Slurm's daemons need root")
    # Short, for munged's socket lies there.
    with tempfile.TemporaryDirectory(prefix="rdmacoll-slurm.") as folder:
        try:
            with Hosts(NODES + 1) as hosts:
                yield Cluster(hosts, Path(folder))
        except NoHosts as error:
            pytest.skip(str(error))
