"""A rank that runs rdmarun itself: the inner job is independent, but ends with the outer one.

Floor: tests.
"""

import signal

import pytest
from backlog import nightly
from job_runner import LIMIT_S, Jobs, both, wait_for

OUTER = """
    import os, subprocess, sys
    inner = [sys.executable, "-m", "rdmacoll.launcher", "-np", "2", *sys.argv[1:]]
    sys.exit(subprocess.run(inner).returncode)
"""
INNER = """
    import os
    print(os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
"""


@both
def test_inner_jobs_are_jobs_of_their_own(jobs: Jobs, options: list[str]) -> None:
    done = jobs.run(*options, jobs.script(OUTER), jobs.script(INNER, "inner.py"))
    assert done.returncode == 0, done.stderr
    expected = [f"[{outer}]: [{inner}]: {inner} of 2" for outer in range(2) for inner in range(2)]
    assert sorted(done.stdout.splitlines()) == expected


def test_the_status_of_an_inner_job_is_its_ranks(jobs: Jobs) -> None:
    inner = jobs.script(
        "import os, time; os.environ['RANK'] == '1' and os._exit(9); time.sleep(99)", "i.py"
    )
    assert jobs.run("-np", "1", jobs.script(OUTER), inner).returncode == 9


@nightly
@both
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_all_end_with_the_outer(jobs: Jobs, options: list[str], sig: signal.Signals) -> None:
    inner = jobs.script(
        "import os, time; open(f'up.{os.getpid()}', 'w'); time.sleep(1000)", "inner.py"
    )
    process = jobs.start(*options, jobs.script(OUTER), inner)
    wait_for(lambda: len(jobs.files("up.*")) == 4, "the inner ranks")
    process.send_signal(sig)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == (-sig if sig == signal.SIGKILL else 128 + sig)
    jobs.assert_none_left()
