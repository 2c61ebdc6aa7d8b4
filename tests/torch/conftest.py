"""Options and the session's worlds for tests/torch. The machinery is in world.py and harness.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported here or in the fork server
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# So that small tensors in the heap are zero-copy, too.
os.environ["RDMACOLL_ZERO_COPY_LOCAL_BYTES"] = "1024"

import pytest
from harness import Worlds
from hosts.layout import layout
from hosts.stand import Hosts
from world import Hosted, choose_backend


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", default="rdma", help="backend under test: rdma or gloo")
    parser.addoption("--hosts", type=layout, help="a world over several hosts: 2x1, 2x2, 3+1")


def pytest_configure(config: pytest.Config) -> None:
    choose_backend(config.getoption("--backend", default="rdma"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Over several hosts: what is written for a world of this size, and not for one host."""
    if (chosen := config.getoption("--hosts", default=None)) is None:
        return
    taken = [item for item in items if fits(item, chosen.world)]
    config.hook.pytest_deselected(items=list(set(items) - set(taken)))
    items[:] = taken


def fits(item: pytest.Item, world: int) -> bool:
    call, function = getattr(item, "callspec", None), getattr(item, "function", None)
    of_this_world = call is not None and call.params.get("world_size") == world
    return of_this_world and not getattr(function, "one_host", False)


@pytest.fixture(scope="session")
def worlds(request: pytest.FixtureRequest) -> Iterator[Worlds]:
    chosen = request.config.getoption("--hosts", default=None)
    with ExitStack() as stack:
        hosted = None
        if chosen:
            hosted = Hosted(stack.enter_context(Hosts(len(chosen.ranks))), chosen)
        pools = Worlds(hosted)
        yield pools
        pools.close()
