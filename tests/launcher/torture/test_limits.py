"""Limits that are too low: a line that names them, or a job that runs; never a traceback or a hang.

Floor: tests.
"""

import resource
import subprocess

import pytest
from backlog import nightly
from job_runner import LIMIT_S, Jobs


def run_with(jobs: Jobs, limits: str, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            "bash",
            "-c",
            f'{limits}; exec "$@"',
            "bash",
            jobs.python,
            "-m",
            "rdmacoll.launcher",
            *args,
        ],
        cwd=jobs.folder,
        env=jobs.env({}),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


@pytest.mark.parametrize("descriptors", [20, 63, 64, 95])
def test_too_few_descriptors(jobs: Jobs, descriptors: int) -> None:
    done = run_with(jobs, f"ulimit -n {descriptors}", "-np", "4", jobs.script("pass"))
    assert done.returncode == 1
    assert f"and {descriptors} are allowed (ulimit -n)" in done.stderr
    assert "Traceback" not in done.stderr


def test_enough_descriptors(jobs: Jobs) -> None:
    done = run_with(jobs, "ulimit -n 96", "-np", "4", jobs.script("print('here')"))
    assert (done.returncode, done.stdout.count("here")) == (0, 4)


def test_the_soft_limit_of_the_ranks_is_the_users(jobs: Jobs) -> None:
    text = "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = run_with(jobs, "ulimit -Sn 70", "-np", "4", jobs.script(text), "--no-tag-output")
    assert done.stdout.splitlines() == [
        f"[{line[1]}]: 70 {hard}" for line in done.stdout.split("\n")[:-1]
    ]


@nightly
@pytest.mark.parametrize("memory_kb", [40_000, 60_000, 100_000, 400_000])
def test_little_address_space(jobs: Jobs, memory_kb: int) -> None:
    done = run_with(jobs, f"ulimit -v {memory_kb}", "-np", "2", jobs.script("print('here')"))
    assert (done.returncode == 0) == (done.stdout.count("here") == 2)


@pytest.mark.parametrize(
    "processes",
    [4, 20, *(pytest.param(n, marks=nightly) for n in (1, 2, 3, 8, 14, 16, 18, 22, 24, 26, 32))],
)
def test_few_processes(jobs: Jobs, processes: int) -> None:
    """Of a user who is not root, whom no such limit holds. Threads count, too."""
    jobs.folder.chmod(0o777)
    other = "setpriv --reuid 54321 --clear-groups --inh-caps=+dac_override"
    done = subprocess.run(
        [*other.split(), "--ambient-caps=+dac_override", "bash", "-c"]
        + [f'ulimit -u {processes}; exec "$@"', "bash", jobs.python, "-m", "rdmacoll.launcher"]
        + ["-np", "4", jobs.script("print('here')")],
        cwd=jobs.folder,
        env=jobs.env({"HOME": str(jobs.folder)}),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (done.returncode == 0) == (done.stdout.count("here") == 4), done.stderr
    assert "Permission denied" not in done.stderr
    assert "launcher" not in done.stderr, done.stderr  # as tracebacks of ours have it
    assert done.returncode == 0 or "rdmarun: " in done.stderr
