"""For all tests: in CI a skipped test is a failure, for it shows nothing of what it tests.

Tests marked `nightly` take long. They run where RDMACOLL_NIGHTLY=1 is set, as `make nightly` does,
and are left out elsewhere; each has a shorter form that always runs.

Where RDMACOLL_DAY is set, as CI does, of folders that take long a part runs, another one every day.
"""

import os
import signal

import pytest
from parts import Part, part

# Of how many parts of a folder one runs a day.
ROTATED = {
    "bench": 4,
    "debug": 3,
    "files": 2,
    "frameworks": 3,
    "horovod": 3,
    "hosts": 4,
    "launcher": 4,
    "mount": 2,
    "plan_command": 3,
    "programs": 3,
    "ps": 4,
    "torch": 4,
    "torture": 4,
}
# Of these, those whose files are not divided: each starts a job, for all its tests.
WHOLE_FILES = {"files", "mount", "ps"}
# What guards the main job.
EVERY_DAY = {
    "test_all_gather",
    "test_all_reduce",
    "test_barrier",
    "test_broadcast",
    "test_ddp",
    "test_face",
    "test_kill",
    "test_mount",
    "test_output",
    "test_p2p",
    "test_reduce_scatter",
    "test_rendezvous",
    "test_run",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", type=part, default=Part(), metavar="K/N", help="of the tests")


def pytest_configure() -> None:
    # A shell has its background commands ignore SIGINT, and nohup SIGHUP. What tests start would
    # inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_report_header() -> str | None:
    if "RDMACOLL_DAY" not in os.environ:
        return None
    parts = ", ".join(f"{folder} {todays(folder)}" for folder in ROTATED)
    return f"RDMACOLL_DAY={os.environ['RDMACOLL_DAY']}: of these folders a part alone: {parts}"


@pytest.hookimpl(trylast=True)  # once other options have chosen what there is a part of
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out_nightly(config, items)
    leave_out_other_days(config, items)
    taken = list(config.getoption("--part").of(items))
    config.hook.pytest_deselected(items=list(set(items) - set(taken)))
    items[:] = taken


def leave_out_nightly(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("RDMACOLL_NIGHTLY") == "1":
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly:
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)


def leave_out_other_days(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "RDMACOLL_DAY" not in os.environ:
        return
    rotating = [item for item in items if item.path.stem not in EVERY_DAY]
    others = set()
    for folder in ROTATED:
        of_folder = [item for item in rotating if item.path.parent.name == folder]
        wanted = todays(folder).of(list(dict.fromkeys(map(divided, of_folder))))
        others |= {item for item in of_folder if divided(item) not in wanted}
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=list(others))


def divided(item: pytest.Item) -> str:
    """What runs on a day or does not: a test, or all of its file."""
    return item.path.name if item.path.parent.name in WHOLE_FILES else item.nodeid


def todays(folder: str) -> Part:
    count = ROTATED[folder]
    return Part(int(os.environ["RDMACOLL_DAY"]) % count, count)


def skipped(config: pytest.Config) -> int:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return len(reporter.stats.get("skipped", [])) if reporter and os.environ.get("CI") else 0


def pytest_sessionfinish(session: pytest.Session) -> None:
    if skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if count := skipped(config):
        terminalreporter.write_line(f"in CI a skip is a failure: {count} skipped", red=True)
