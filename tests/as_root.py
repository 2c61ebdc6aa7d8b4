"""Skips tests that only root can run; in CI a skipped test counts as a failed one.

Floor: tests.
"""

import os

import pytest


def only_as_root() -> None:
    """For tests in which a process or a file belongs to another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
