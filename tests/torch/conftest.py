"""Options and the session's worlds for tests/torch. The machinery is in world.py and harness.py."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported here or in the fork server
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# So that small tensors in the heap are zero-copy, too.
os.environ["RDMACOLL_ZERO_COPY_LOCAL_BYTES"] = "1024"

import pytest
from harness import Worlds
from world import choose_backend


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", default="rdma", help="backend under test: rdma or gloo")


def pytest_configure(config: pytest.Config) -> None:
    choose_backend(config.getoption("--backend", default="rdma"))


@pytest.fixture(scope="session")
def worlds() -> Iterator[Worlds]:
    pools = Worlds()
    yield pools
    pools.close()
