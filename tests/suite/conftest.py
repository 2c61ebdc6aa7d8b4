"""Options of tests/suite, and what counts as a failure there.

Tests that gloo passes are expected to pass; baseline.json holds their names by world, recorded with
    pytest tests/suite --backend gloo --record
A test of known_gates.json may fail as described there, and only so: if it passes the entry is old.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pytest
from adapt import chosen
from hosts.layout import layout
from hosts.stand import Hosts

HERE = Path(__file__).parent
BASELINE = HERE / "baseline.json"
GATES = HERE / "known_gates.json"
# Kept for MPI, since gloo wants lists of equal sizes; expected of us.
MORE_THAN_GLOO = {
    "test_all_to_all",
    "test_all_to_all_complex",
    "test_all_to_all_full_group",
    "test_all_to_all_group",
}

passed = pytest.StashKey[dict[str, list[str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("torch's own tests")
    group.addoption("--backend", default="rdma", help="backend under test")
    group.addoption("--hosts", type=layout, help="only a world over several hosts: 2x1, 2x2, 3+1")
    group.addoption("--lift-gates", action="store_true", help="patch torch's liftable gates")
    group.addoption("--record", action="store_true", help="write baseline.json anew")
    group.addoption("--all", action="store_true", help="also what gloo does not pass")


def pytest_configure(config: pytest.Config) -> None:
    chosen.backend = config.getoption("--backend")
    chosen.lift_gates = config.getoption("--lift-gates")


@pytest.fixture(scope="session", autouse=True)
def hosted(request: pytest.FixtureRequest) -> Iterator[None]:
    if (spread := request.config.getoption("--hosts")) is None:
        yield
        return
    with Hosts(len(spread.ranks)) as hosts:
        chosen.holders = [hosts[spread.host_of(rank)].keeper.holder for rank in range(spread.world)]
        yield


def name_of(item: pytest.Item) -> tuple[str, str]:
    """(world, test)"""
    assert item.parent is not None
    return item.parent.name.removeprefix("TestWorld"), item.name


def keep(config: pytest.Config, items: list[pytest.Item], names: set[tuple[str, str]]) -> None:
    others = [item for item in items if name_of(item) not in names]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if name_of(item) in names]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[passed] = {}
    names = {name_of(item) for item in items if "TestWorld" in item.nodeid}
    if not (config.getoption("--record") or config.getoption("--all")):
        baseline: dict[str, list[str]] = json.loads(BASELINE.read_text())
        expected = {(world, test) for world, tests in baseline.items() for test in tests}
        if config.getoption("--backend") != "gloo":
            expected |= {(world, test) for world in baseline for test in MORE_THAN_GLOO}
            expected.discard(("2", "test_all_to_all_group"))  # needs a third rank
        if lost := expected - names:
            raise pytest.UsageError(f"tests of the baseline are gone: {sorted(lost)}")
        names = expected
    if spread := config.getoption("--hosts"):
        names = {(world, test) for world, test in names if world == str(spread.world)}
    keep(config, items, names)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when != "call":
        return report
    config = item.config
    if report.passed:
        world, test = name_of(item)
        config.stash[passed].setdefault(world, []).append(test)
    if not (config.getoption("--record") or config.getoption("--all")):
        judge(report, json.loads(GATES.read_text()).get(item.name), config)
    return report


def judge(report: pytest.TestReport, gate: dict[str, Any] | None, config: pytest.Config) -> None:
    lifted = gate is not None and gate["liftable"] and config.getoption("--lift-gates")
    if config.getoption("--backend") == "gloo" or lifted:
        gate = None
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped here, though gloo passes it: {report.longrepr}"
    elif gate and report.passed:
        report.outcome = "failed"
        report.longrepr = "passes, though known_gates.json says that it cannot: drop the entry"
    elif gate and report.failed and re.search(gate["match"], report.longreprtext):
        report.outcome = "skipped"
        report.wasxfail = gate["why"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--record"):
        names = {world: sorted(tests) for world, tests in session.config.stash[passed].items()}
        BASELINE.write_text(json.dumps(names, indent=1) + "\n")
