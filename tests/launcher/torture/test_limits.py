"""Low limits: the job runs, or a line names the limit; there is never a traceback or a hang.

Floor: tests.
"""

import os
import resource
import subprocess

import pytest
from as_root import only_as_root
from backlog import nightly
from job_runner import LIMIT_S, TWO_HOSTS, Jobs, wait_for
from rdmacoll.launcher.agent import store
from rdmacoll.launcher.agent.rank_env import Master


def run_with(
    jobs: Jobs, limits: str, *args: str, user: str = "", **env: str
) -> "subprocess.CompletedProcess[str]":
    """Runs rdmarun under what the shell command `limits` sets. `user`: a command that becomes
    another user first."""
    shell = ["bash", "-c", f'{limits}; exec "$@"', "bash"]
    return subprocess.run(
        [*user.split(), *shell, *jobs.rdmarun, *args],
        cwd=jobs.folder,
        env=jobs.env(env),
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


@pytest.mark.parametrize("preload", [[], ["--preload", "json"]], ids=["", "preload"])
def test_the_soft_limit_of_the_ranks_is_the_users(jobs: Jobs, preload: list[str]) -> None:
    text = "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = run_with(jobs, "ulimit -Sn 70", "-np", "4", *preload, jobs.script(text))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}]: 70 {hard}" for rank in range(4)]


@nightly
@pytest.mark.parametrize("memory_kb", [40_000, 60_000, 100_000, 400_000])
def test_little_address_space(jobs: Jobs, memory_kb: int) -> None:
    done = run_with(jobs, f"ulimit -v {memory_kb}", "-np", "2", jobs.script("print('here')"))
    if done.returncode == 0:
        assert done.stdout.count("here") == 2
    else:  # ranks that need nothing of what there was no room for may have ended well
        assert "rdmarun:" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "processes",
    [4, 20, *(pytest.param(n, marks=nightly) for n in (1, 2, 3, 8, 14, 16, 18, 22, 24, 26, 32))],
)
@pytest.mark.parametrize("preload", [[], ["--preload", "json"]], ids=["", "preload"])
def test_few_processes(jobs: Jobs, processes: int, preload: list[str]) -> None:
    """The limit does not hold for root, so another user runs this. Threads count as processes."""
    only_as_root()
    jobs.folder.chmod(0o777)
    user = "setpriv --reuid 54321 --clear-groups"
    user += " --inh-caps=+dac_override --ambient-caps=+dac_override"
    args = ["-np", "4", *preload, jobs.script("print('here')")]
    done = run_with(jobs, f"ulimit -u {processes}", *args, user=user, HOME=str(jobs.folder))
    assert (done.returncode == 0) == (done.stdout.count("here") == 4), done.stderr
    assert "Permission denied" not in done.stderr
    assert "launcher" not in done.stderr, done.stderr  # a traceback of ours names it
    assert done.returncode == 0 or "rdmarun: " in done.stderr


def test_too_few_descriptors_for_the_hosts(jobs: Jobs) -> None:
    done = run_with(jobs, "ulimit -n 75", *TWO_HOSTS, jobs.script("pass"))
    assert done.returncode == 1
    assert "76 file descriptors are needed for 2 hosts, and 75 are allowed" in done.stderr


def test_the_room_for_many_hosts_is_not_the_ranks(jobs: Jobs) -> None:
    text = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    done = run_with(jobs, "ulimit -Sn 67", *TWO_HOSTS, jobs.script(text))
    assert sorted(done.stdout.splitlines()) == ["[0]: 67", "[1]: 67"], done.stderr


def test_the_store_takes_as_many_connections_as_it_may() -> None:
    """The agent starts it before it raises its own limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    listener = store.listen(only_local=True)
    # Above what this process has open itself, which earlier tests decide.
    few = max(200, *map(int, os.listdir("/proc/self/fd"))) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        process = store.start(listener, Master("127.0.0.1", listener.getsockname()[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        wait_for(
            lambda: resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard),
            "the store's limit",
        )
    finally:
        process.kill()
        process.wait()
