"""What users get wrong: each a clear error with a remedy, none a start.

Floor: tests.
"""

import pytest
from conftest import Jobs


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "how many ranks? give -np N"),
        (["-np", "2"], "what shall the ranks run?"),
        (["-np", "0", "s.py"], "0 is not a positive number"),
        (["-np", "two", "s.py"], "invalid int value: 'two'"),
        (["-np", "2", "--bogus", "s.py"], "--bogus"),
        (["-np", "3", "-H", "localhost:2", "s.py"], "-np 3: there are only 2 slots"),
        (["-np", "1", "-H", "localhost:x", "s.py"], "`x` is no number of slots"),
        (["-np", "1", "--hostfile", "none", "s.py"], "No such file or directory: 'none'"),
        (["-np", "1", "-H", "a", "--hostfile", "f", "s.py"], "not allowed with"),
        (["-np", "1", "-x", "=1", "s.py"], "names no variable"),
        (["-np", "1", "-x", "NEVER_SET", "s.py"], "write -x NEVER_SET=VALUE"),
        (["-np", "1", "--start-timeout", "0", "s.py"], "0 is not a positive number"),
        (["-np", "1", "missing.py"], "missing.py: there is no such script"),
    ],
)
def test_command_line(jobs: Jobs, args: list[str], says: str) -> None:
    done = jobs.run(*args)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_missing_module(jobs: Jobs) -> None:
    done = jobs.run("-np", "1", "-m", "no_such_module")
    assert done.returncode == 1
    assert "No module named no_such_module" in done.stderr


def test_output_folder_that_cannot_be_made(jobs: Jobs) -> None:
    (jobs.folder / "taken").write_text("")
    done = jobs.run_script("pass", "-np", "2", "--output-filename", "taken")
    assert done.returncode == 1
    assert "cannot start rank 0" in done.stderr and "taken" in done.stderr


def test_version_and_help(jobs: Jobs) -> None:
    assert jobs.run("--version").stdout.startswith("rdmarun (rdmacoll) ")
    assert "--start-timeout" in jobs.run("--help").stdout
