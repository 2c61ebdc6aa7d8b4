"""Whether this machine can have a mount.

Floor: tests.
"""

import os
import shutil

import pytest


def check_fuse() -> None:
    """Skips the test where it cannot."""
    if not os.path.exists("/dev/fuse") or shutil.which("fusermount3") is None:
        pytest.skip("there is no /dev/fuse, or no fusermount3: nothing can be mounted here")
