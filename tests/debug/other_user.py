"""Processes of another user, for tests of what they can do to this one. Only root can start them.

Floor: tests.
"""

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from as_root import only_as_root
from namespaces import in_namespace

NOBODY = 65534
LIMIT_S = 60


@contextmanager
def acting(script: str) -> Iterator[None]:
    """A process of another user that has run the script, and stays until the end. The script itself
    imports nothing: that user may not be allowed to read root's Python."""
    only_as_root()
    become = f"import os, secrets, socket, threading; os.setresuid({NOBODY}, {NOBODY}, {NOBODY})"
    run = [sys.executable, "-c", f"{become}\n{script}\nprint('done', flush=True)\ninput()"]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], LIMIT_S)[0], "it has not done it in time"
            assert process.stdout.readline() == b"done\n"
            yield
        finally:
            process.kill()


def in_user_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Runs it where the kernel shows all users by one id, that of this process, too."""
    run = [*in_namespace("user"), sys.executable, "-c", script]
    return subprocess.run(run, capture_output=True, text=True, timeout=LIMIT_S)
