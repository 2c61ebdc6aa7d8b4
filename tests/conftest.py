"""For all tests: in CI a skipped test is a failure, for it shows nothing of what it tests."""

import os

import pytest


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
