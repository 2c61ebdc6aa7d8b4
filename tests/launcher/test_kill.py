"""kill -9 of any process of a job: none of the others is left behind.

Floor: tests.
"""

import signal

import psutil
import pytest
from job_runner import LIMIT_S, Jobs, wait_for

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


# The processes of a job, each the parent of the next.
ROLES = {
    "localhost:2": ["rdmarun", "subreaper", "agent"],
    "localhost:1,127.0.0.1:1": ["rdmarun", "mpiexec", "proxy", "subreaper", "agent"],
}


def victim(rdmarun: int, hosts: str, role: str, agent: int) -> psutil.Process:
    """A process of the job, by its place in the tree below rdmarun."""
    process = psutil.Process(rdmarun)
    for depth in range(ROLES[hosts].index(role)):
        process = process.children()[agent if depth == 0 else 0]
    return process


@pytest.mark.parametrize("agent", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize(
    ("hosts", "role"), [(hosts, role) for hosts, roles in ROLES.items() for role in roles]
)
def test_kill(jobs: Jobs, role: str, hosts: str, agent: int) -> None:
    process = jobs.start("-np", "2", "-H", hosts, jobs.script(FAMILY))
    wait_for(lambda: len(jobs.files("up.*")) == 2, "the ranks")
    victim(process.pid, hosts, role, agent).kill()
    process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    jobs.assert_none_left()


def test_the_children_of_a_killed_rank_end_while_the_others_go_on(jobs: Jobs) -> None:
    text = """
        import os, signal, subprocess, sys, time
        from pathlib import Path
        child = Path("child")
        if os.environ["RANK"] == "1":
            sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            Path("new").write_text(str(sleeper.pid))
            os.rename("new", child)
            os.kill(os.getpid(), signal.SIGKILL)
        until = time.monotonic() + 60
        while not child.exists() or Path("/proc", child.read_text()).exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        print("it has ended")
    """
    done = jobs.run("-np", "2", "--min-np", "1", jobs.script(text))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0]: it has ended\n"


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


def test_the_first_ctrl_c_after_a_reader_has_left_waits(jobs: Jobs) -> None:
    text = """
        import signal, sys, time
        def clean_up(*_):
            open("asked", "w")
            time.sleep(1)
            open("cleaned up", "w")
            sys.exit()
        signal.signal(signal.SIGTERM, clean_up)
        while True:
            print("more", flush=True)
            time.sleep(0.01)
    """
    process = jobs.start("-np", "1", jobs.script(text))
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    wait_for(lambda: bool(jobs.files("asked")), "what follows the end of the reader")
    process.send_signal(signal.SIGINT)
    assert "stopped by SIGPIPE" in process.stderr.read()
    assert process.wait(60) == 130
    assert jobs.files("cleaned up")


@pytest.mark.parametrize(("agent", "host"), [(0, "localhost"), (-1, "127.0.0.1")])
def test_an_agent_that_hangs_ends_the_job(jobs: Jobs, agent: int, host: str) -> None:
    hosts = "localhost:1,127.0.0.1:1"
    process = jobs.start("-np", "2", "-H", hosts, jobs.script(FAMILY))
    wait_for(lambda: len(jobs.files("up.*")) == 2, "the ranks")
    stopped = victim(process.pid, hosts, "agent", agent)
    stopped.suspend()
    try:
        _, err = process.communicate(timeout=LIMIT_S)
    finally:
        stopped.resume()
    assert process.returncode == 1
    assert f"rdmarun: host {host} (rank {agent % 2}) is lost: its agent has said nothing" in err
    assert "Traceback" not in err
    jobs.assert_none_left()
