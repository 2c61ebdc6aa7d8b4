"""Hosts for a file of tests, as fixtures.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hosts import NoHosts
from hosts.layout import layout
from hosts.ranks import Rank, Start, start_ranks
from hosts.stand import Host, Hosts, MakeHosts


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    with skipping(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    with skipping(item):
        return (yield)


@contextmanager
def skipping(item: pytest.Item) -> Iterator[None]:
    """Where there can be no hosts the test is skipped."""
    try:
        yield
    except NoHosts as error:
        pytest.skip(f"{item.name}: {error}")


@pytest.fixture(scope="module")
def make_hosts() -> Iterator[MakeHosts]:
    """So many hosts, until the file ends."""
    with ExitStack() as stands:

        def make(count: int, ipv4: bool = True) -> list[Host]:
            return stands.enter_context(Hosts(count, ipv4))

        yield make


@pytest.fixture(scope="module")
def two_hosts(make_hosts: MakeHosts) -> list[Host]:
    return make_hosts(2)


@pytest.fixture
def start(two_hosts: list[Host], tmp_path: Path) -> Iterator[Start]:
    """Starts ranks on two hosts; whatever they do, they end with the test."""
    started: list[Rank] = []

    def start_on_two(spread: str, script: str, **options: Any) -> list[Rank]:
        ranks = start_ranks(two_hosts, layout(spread), script, tmp_path, **options)
        started.extend(ranks)
        return ranks

    yield start_on_two
    for rank in started:
        rank.kill()
