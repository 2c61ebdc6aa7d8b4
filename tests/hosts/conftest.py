"""Hosts for a file of tests, as fixtures.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hosts import NoHosts
from hosts.stand import Host, Hosts, MakeHosts


@pytest.fixture(scope="module")
def make_hosts() -> Iterator[MakeHosts]:
    """So many hosts, until the file ends. Skips where this user may make none."""
    with ExitStack() as stands:

        def make(count: int) -> list[Host]:
            try:
                return stands.enter_context(Hosts(count))
            except NoHosts as error:
                pytest.skip(f"no hosts to test on: {error}")

        yield make


@pytest.fixture(scope="module")
def two_hosts(make_hosts: MakeHosts) -> list[Host]:
    return make_hosts(2)
