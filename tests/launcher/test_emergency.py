"""An agent that is told to end while its main thread hangs, or reaps what the other one kills.

Floor: tests.
"""

import signal
import subprocess

import psutil
import pytest
from job_runner import Jobs, wait_for
from rdmacoll.launcher.base import processes

CHILDREN = 20
AGENT = f"""
    import ctypes, os, subprocess, sys
    from rdmacoll.launcher.agent.emergency import watch_signals
    from rdmacoll.launcher.base.processes import become_subreaper, reap
    become_subreaper()
    watch_signals()
    for _ in range({CHILDREN}):  # each with a child that has a child
        subprocess.Popen(["sh", "-c", "sh -c 'sleep 1000 & wait' & wait"])
    open("up", "w")
"""
# Locks a mutex twice: no signal gets the main thread out of that, as with some calls of MPI.
HANGS = """
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex), lock(mutex)
"""
REAPS = """
    while True:
        list(reap(()))
"""


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("main", [HANGS, REAPS], ids=["hangs", "reaps"])
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_with_all_below_it(jobs: Jobs, sig: signal.Signals, main: str) -> None:
    process = subprocess.Popen([jobs.python, jobs.script(AGENT + main)], cwd=jobs.folder)
    wait_for(lambda: bool(jobs.files("up")), "the process")
    family = psutil.Process(process.pid)
    wait_for(lambda: len(family.children(recursive=True)) == 3 * CHILDREN, "its family")
    below = family.children(recursive=True)
    process.send_signal(sig)
    assert process.wait(60) == 128 + sig
    assert not any(map(is_alive, below))


def test_a_child_that_the_other_thread_has_reaped_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    looks = iter([[child.pid], []])
    monkeypatch.setattr(processes, "_children", lambda: next(looks))
    processes.kill_unreaped()
    assert next(looks, None) is None
