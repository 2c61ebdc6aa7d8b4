"""kill -9 of any process of a job: none of the others is left behind.

Floor: tests.
"""

import signal

import psutil
import pytest
from job_runner import Jobs, wait_for

# Each rank has a child in its own group, one in a session of its own, and its own child's child.
FAMILY = """
    import os, subprocess, sys, time
    sleep = [sys.executable, "-c", "import time; time.sleep(1000)"]
    subprocess.Popen(sleep)
    subprocess.Popen(sleep, start_new_session=True)
    subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.run({sleep})"])
    open("up." + os.environ["RANK"], "w")
    time.sleep(1000)
"""


ONE_HOST = "localhost:2"
TWO_HOSTS = "localhost:1,127.0.0.1:1"
PARTS = {ONE_HOST: ["keeper", "agent"], TWO_HOSTS: ["mpiexec", "proxy", "keeper", "agent"]}


def victim(rdmarun: int, hosts: str, role: str) -> psutil.Process:
    """A process of the job, by its place in the tree below rdmarun."""
    process = psutil.Process(rdmarun)
    for part in PARTS[hosts]:
        if role == "rdmarun":
            break
        process = process.children()[0]
        if part == role:
            break
    return process


@pytest.mark.parametrize(
    ("hosts", "role"), [(hosts, role) for hosts in PARTS for role in ["rdmarun", *PARTS[hosts]]]
)
def test_kill(jobs: Jobs, role: str, hosts: str) -> None:
    process = jobs.start("-np", "2", "-H", hosts, jobs.script(FAMILY))
    wait_for(lambda: len(jobs.files("up.*")) == 2, "the ranks")
    victim(process.pid, hosts, role).kill()
    process.communicate(timeout=60)
    assert process.returncode != 0
    jobs.assert_none_left()


def test_a_second_ctrl_c_does_not_wait(jobs: Jobs) -> None:
    """For the orderly end, that is, which would report."""
    text = """
        import signal, time
        signal.signal(signal.SIGINT, lambda *_: open("asked", "w"))
        open("up", "w")
        while True:
            time.sleep(1)
    """
    process = jobs.start("-np", "1", jobs.script(text))
    wait_for(lambda: bool(jobs.files("up")), "the rank")
    process.send_signal(signal.SIGINT)
    wait_for(lambda: bool(jobs.files("asked")), "the first signal")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped by" not in err
    jobs.assert_none_left()
