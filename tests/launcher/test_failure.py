"""Ranks that fail: the job ends at once, with that rank's status and last words.

Floor: tests.
"""

import signal
import subprocess

import pytest
from job_runner import Jobs, wait_for

ONE_HOST = ["-np", "3"]
TWO_HOSTS = ["-np", "3", "-H", "localhost:1,127.0.0.1:2"]

# The others sleep longer than any test may take.
ONE_FAILS = """
    import os, signal, sys, time
    if os.environ["RANK"] == "1":
        print("about to fail", file=sys.stderr)
        {fail}
    time.sleep(1000)
"""


def run_failing(jobs: Jobs, options: list[str], fail: str) -> "subprocess.CompletedProcess[str]":
    return jobs.run_script(ONE_FAILS.format(fail=fail), *options)


@pytest.mark.parametrize("options", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_exit_status(jobs: Jobs, options: list[str]) -> None:
    done = run_failing(jobs, options, "sys.exit(3)")
    assert done.returncode == 3
    assert "rdmarun: rank 1 on " in done.stderr
    assert "exited with status 3; the last lines of its stderr:\n" in done.stderr
    assert "rdmarun:     about to fail\n" in done.stderr


@pytest.mark.parametrize("options", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_signal(jobs: Jobs, options: list[str]) -> None:
    done = run_failing(jobs, options, "os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == 128 + signal.SIGKILL
    assert "was killed by SIGKILL" in done.stderr


def test_exception(jobs: Jobs) -> None:
    done = run_failing(jobs, ONE_HOST, "raise RuntimeError('boom')")
    assert done.returncode == 1
    report = done.stderr.partition("exited with status 1")[2]
    assert "rdmarun:     RuntimeError: boom\n" in report


def test_ranks_that_ignore_sigterm_are_killed(jobs: Jobs) -> None:
    text = """
        import os, signal, sys, time
        if os.environ["RANK"] == "0":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open("ignores", "w")
        else:
            while not os.path.exists("ignores"):
                time.sleep(0.01)
            sys.exit(4)
        time.sleep(1000)
    """
    assert jobs.run_script(text, "-np", "2").returncode == 4


def test_the_first_failure_counts(jobs: Jobs) -> None:
    """On two hosts: the second failure is a consequence of the first."""
    text = """
        import os, sys, time
        if os.environ["RANK"] == "1":
            time.sleep(0.5)
            sys.exit(5)
        time.sleep(1000)
    """
    done = jobs.run_script(text, "-np", "2", "-H", "localhost:1,127.0.0.1:1")
    assert done.returncode == 5


def test_daemons_of_a_rank_end_with_the_job(jobs: Jobs) -> None:
    text = """
        import os, subprocess, sys, time
        for session in (False, True):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"],
                             start_new_session=session)
    """
    assert jobs.run_script(text, "-np", "2").returncode == 0
    jobs.assert_none_left()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("options", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_signals_to_rdmarun(jobs: Jobs, options: list[str], sig: signal.Signals) -> None:
    text = "import os, time; open('up.' + os.environ['RANK'], 'w'); time.sleep(1000)"
    process = jobs.start(*options, jobs.script(text))
    wait_for(lambda: len(jobs.files("up.*")) == 3, "the ranks")
    process.send_signal(sig)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + sig
    assert f"stopped by {sig.name}" in err
    jobs.assert_none_left()


def test_ctrl_c_lets_ranks_clean_up(jobs: Jobs) -> None:
    text = """
        import time
        try:
            open("up", "w")
            time.sleep(1000)
        except KeyboardInterrupt:
            print("cleaned up")
    """
    process = jobs.start("-np", "1", jobs.script(text))
    wait_for(lambda: bool(jobs.files("up")), "the rank")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "[0]: cleaned up\n")


def test_a_reader_that_leaves_ends_the_job(jobs: Jobs) -> None:
    text = "import time\nwhile True: print('more'); time.sleep(0.01)"
    process = jobs.start("-np", "2", jobs.script(text))
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 128 + signal.SIGPIPE
    jobs.assert_none_left()
