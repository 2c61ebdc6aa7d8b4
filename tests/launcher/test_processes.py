"""What is seen of a process that ends.

Floor: tests.
"""

from __future__ import annotations

import subprocess
import sys
import time

from rdmacoll.launcher.base.processes import is_ending


def test_a_process_that_ends() -> None:
    """It lives, has ended and is not reaped, and is gone."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not is_ending(child.pid)
    child.kill()
    until = time.monotonic() + 30
    while not is_ending(child.pid):
        assert time.monotonic() < until
        time.sleep(0.01)
    child.communicate()
    assert is_ending(child.pid)
