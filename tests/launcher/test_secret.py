"""The job's secret: what a rank is told of it, and where it cannot be found.

Floor: tests.
"""

import shutil
from pathlib import Path

import pytest
from job_runner import Jobs, wait_for

TWO_HOSTS = ["-np", "3", "-H", "localhost:2,127.0.0.1:1"]
BOTH = pytest.mark.parametrize("options", [["-np", "3"], TWO_HOSTS], ids=["one host", "two hosts"])

KEEP_IT = """
    from client import *
    told = secret()
    assert secret() == told and exchange(b"payload") == [b"payload"] * WORLD and secret() == told
    open(f"secret.{RANK}", "wb").write(told)
"""
AND_STAY = """
    import time
    while not os.path.exists("enough"):
        time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def _client(jobs: Jobs) -> None:
    shutil.copy(Path(__file__).parent / "client.py", jobs.folder)


def secrets_of(jobs: Jobs) -> list[bytes]:
    return [path.read_bytes() for path in jobs.files("secret.*")]


@BOTH
def test_all_ranks_of_a_job_are_told_the_same_and_of_two_jobs_not(
    jobs: Jobs, options: list[str]
) -> None:
    found = set()
    for _ in range(2):
        assert jobs.run_script(KEEP_IT, *options).returncode == 0
        told = secrets_of(jobs)
        assert len(told) == 3 and len(set(told)) == 1 and len(told[0]) == 32
        found.add(told[0])
    assert len(found) == 2


def test_it_is_in_no_environment_on_no_command_line_and_in_no_file(jobs: Jobs) -> None:
    """Not as it is and not as text; but what the ranks here have written themselves."""
    script = jobs.script(KEEP_IT + AND_STAY)
    job = jobs.start(*TWO_HOSTS, script)
    try:
        wait_for(lambda: [len(told) for told in secrets_of(jobs)] == [32] * 3, "the secrets")
        told = secrets_of(jobs)[0]
        forms = [told, told.hex().encode(), repr(told).encode()]
        processes = jobs.processes()
        assert len(processes) > 5  # rdmarun, mpiexec, keepers, agents, the store, ranks
        for process in processes:
            for file in "environ", "cmdline":
                text = Path(f"/proc/{process.pid}/{file}").read_bytes()
                assert not any(form in text for form in forms), (process, file)
        for path in jobs.folder.rglob("*"):
            if path.is_file() and not path.name.startswith("secret."):
                assert not any(form in path.read_bytes() for form in forms), path
    finally:
        (jobs.folder / "enough").touch()
        assert job.wait(60) == 0
