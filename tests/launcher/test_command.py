"""What ranks run: what is a python script, and what is a command.

Floor: tests.
"""

import sys

import pytest
from job_runner import Jobs, both


@both
def test_a_command_on_path(jobs: Jobs, options: list[str]) -> None:
    done = jobs.run(*options, "bash", "-c", 'echo "$RANK of $WORLD_SIZE, $0"', "more")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (
        0,
        ["[0]: 0 of 2, more", "[1]: 1 of 2, more"],
    ), done.stderr


def test_it_is_looked_for_on_the_ranks_own_path(jobs: Jobs) -> None:
    (jobs.folder / "bin").mkdir()
    program = jobs.script("#!/bin/sh\necho mine\n", "bin/its_own")
    (jobs.folder / program).chmod(0o755)
    own = f"PATH={jobs.folder}/bin:/bin:/usr/bin"
    assert jobs.run("-np", "1", "-x", own, "its_own").stdout == "[0]: mine\n"
    assert "no such command on PATH" in jobs.run("-np", "1", "its_own").stderr


@pytest.mark.parametrize("name", ["a.out", "./a.out"])
def test_what_is_executable(jobs: Jobs, name: str) -> None:
    (jobs.folder / jobs.script('#!/bin/sh\necho "$1"\n', "a.out")).chmod(0o755)
    assert jobs.run("-np", "1", name, "--verbose").stdout == "[0]: --verbose\n"


def test_a_name_that_ends_with_py_is_pythons(jobs: Jobs) -> None:
    """Whatever its first line says."""
    (jobs.folder / jobs.script("#!/bin/false\nprint('python')\n")).chmod(0o755)
    assert jobs.run("-np", "1", "script.py").stdout == "[0]: python\n"
    assert jobs.run("-np", "1", "--no-python", "./script.py").returncode == 1


def test_another_python_is_a_command(jobs: Jobs) -> None:
    (jobs.folder / "bin").mkdir()
    (jobs.folder / "bin/python").symlink_to("/bin/echo")
    done = jobs.run("-np", "1", "--no-python", "bin/python", "train.py")
    assert done.stdout == "[0]: train.py\n", done.stderr


def test_a_file_that_is_neither(jobs: Jobs) -> None:
    jobs.script("print('ran')", "train it")
    done = jobs.run("-np", "1", "train it")
    assert done.returncode == 2
    assert done.stderr == (
        "rdmarun: train it is neither executable nor a python script by its name (.py): "
        "chmod +x 'train it', or give `python 'train it'`\n"
    )
    assert jobs.run("-np", "1", sys.executable, "train it").stdout == "[0]: ran\n"


def test_a_folder(jobs: Jobs) -> None:
    (jobs.folder / "tool").mkdir()
    jobs.script("print('ran')", "tool/__main__.py")
    done = jobs.run("-np", "1", "tool")
    assert done.returncode == 2
    assert "rdmarun: tool is a folder: give a script in it, or `python tool`" in done.stderr
    assert jobs.run("-np", "1", sys.executable, "tool").stdout == "[0]: ran\n"


def test_a_command_that_fails_ends_the_job(jobs: Jobs) -> None:
    done = jobs.run(
        "-np", "2", "sh", "-c", 'echo bad >&2; [ "$RANK" = 0 ] || exec sleep 60; exit 7'
    )
    assert done.returncode == 7
    assert "rank 0" in done.stderr and "bad" in done.stderr


def test_a_command_that_cannot_run(jobs: Jobs) -> None:
    """It has no first line that names a program."""
    (jobs.folder / jobs.script("\x7fELF", "broken")).chmod(0o755)
    done = jobs.run("-np", "1", "./broken")
    assert done.returncode == 1
    assert "cannot start rank 0: " in done.stderr and "Traceback" not in done.stderr


def test_commands_find_horovod(jobs: Jobs) -> None:
    script = jobs.script("import horovod; print(horovod.__version__)")
    done = jobs.run("-np", "1", "--horovod", "sh", "-c", f"exec {sys.executable} {script}")
    assert done.stdout == "[0]: 0.28.1\n", done.stderr
