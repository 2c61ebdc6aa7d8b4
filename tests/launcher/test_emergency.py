"""An agent that is told to end while its main thread hangs.

Floor: tests.
"""

import signal
import subprocess

import psutil
import pytest
from conftest import Jobs, wait_for

# Locks a mutex twice: no signal gets the main thread out of that, as with some calls of MPI.
HANGS = """
    import ctypes, os, subprocess, sys
    from rdmacoll.launcher.emergency import watch_signals
    from rdmacoll.launcher.processes import become_subreaper
    become_subreaper()
    watch_signals()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    open("up", "w")
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex), lock(mutex)
"""


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_with_all_below_it(jobs: Jobs, sig: signal.Signals) -> None:
    process = subprocess.Popen([jobs.python, jobs.script(HANGS)], cwd=jobs.folder)
    wait_for(lambda: bool(jobs.files("up")), "the process")
    (child,) = psutil.Process(process.pid).children()
    process.send_signal(sig)
    assert process.wait(60) == 128 + sig
    assert not child.is_running()
