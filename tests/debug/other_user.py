"""Another user of the machine, for tests of what such a one can do. Only root can play it.

Floor: tests.
"""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from namespaces import in_namespace

NOBODY = 65534
LIMIT_S = 60


def only_as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")


@contextmanager
def acting(script: str) -> Iterator[None]:
    """A process of another user that has done this, and stays. It imports nothing: root's Python
    may be none of its business."""
    only_as_root()
    become = f"import os, secrets, socket, threading; os.setresuid({NOBODY}, {NOBODY}, {NOBODY})"
    run = [sys.executable, "-c", f"{become}\n{script}\nprint('done', flush=True)\ninput()"]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], LIMIT_S)[0]
        assert process.stdout.readline() == b"done\n"
        try:
            yield
        finally:
            process.kill()


def in_user_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Where the kernel shows everybody by one id, this process as well."""
    run = [*in_namespace("user"), sys.executable, "-c", script]
    return subprocess.run(run, capture_output=True, text=True, timeout=LIMIT_S)
