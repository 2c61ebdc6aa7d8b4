"""What of the ranks' output is shown, and how its lines begin.

Floor: tests.
"""

import re

import pytest
from job_runner import Jobs, both

PRINTS = """
    import os, sys
    print("out", os.environ["RANK"])
    print("err", os.environ["RANK"], file=sys.stderr)
"""
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} "


def test_output_of_some_ranks_alone(jobs: Jobs) -> None:
    argv = ["-np", "3", "--local-ranks-filter", "0,2", "--output-filename", "logs"]
    done = jobs.run_script(PRINTS, *argv, "-x", "OMP_NUM_THREADS=1")
    assert sorted(done.stdout.splitlines()) == ["[0]: out 0", "[2]: out 2"]
    assert sorted(done.stderr.splitlines()) == ["[0]: err 0", "[2]: err 2"]
    assert (jobs.folder / "logs/rank.1/stdout").read_text() == "out 1\n"
    assert (jobs.folder / "logs/rank.1/stderr").read_text() == "err 1\n"


def test_local_ranks_are_those_of_each_host(jobs: Jobs) -> None:
    hosts = ["-np", "3", "-H", "localhost:1,127.0.0.1:2"]
    done = jobs.run_script(PRINTS, *hosts, "--local_ranks_filter", "0", "--no-tag-output")
    assert sorted(done.stdout.splitlines()) == ["out 0", "out 1"], done.stderr


def test_the_last_lines_of_a_rank_that_fails_are_shown(jobs: Jobs) -> None:
    text = "import os, sys; sys.exit('why' if os.environ['RANK'] == '1' else 0)"
    done = jobs.run_script(text, "-np", "2", "--local-ranks-filter", "0")
    assert done.returncode == 1
    assert "[1]: why" not in done.stderr and "why" in done.stderr


def test_much_that_is_not_shown(jobs: Jobs) -> None:
    """More than a pipe and a sink hold, in lines and not."""
    text = "import sys; [sys.stdout.write(c * 10_000_000) for c in ('x', 'y\\n')]; print('end')"
    done = jobs.run_script(text, "-np", "2", "--local-ranks-filter", "1", "--no-tag-output")
    assert (done.returncode, len(done.stdout)) == (0, 30_000_000 + len("end\n"))


@both
def test_times(jobs: Jobs, options: list[str]) -> None:
    done = jobs.run_script("print('a\\nb')", *options, "--timestamp")
    assert done.returncode == 0, done.stderr
    lines = sorted(re.sub(f"^{TIME}", "<time> ", line) for line in done.stdout.splitlines())
    assert lines == ["<time> [0]: a", "<time> [0]: b", "<time> [1]: a", "<time> [1]: b"]


@pytest.mark.parametrize("name", ["--prefix-output-with-timestamp", "-prefix-timestamp"])
def test_times_without_ranks(jobs: Jobs, name: str) -> None:
    script = jobs.script("import sys; sys.stdout.write('50%\\r100%\\nno end')")
    done = jobs.run("-np", "1", name, "--no-tag-output", "--output-filename", "logs", script)
    assert re.fullmatch(rf"{TIME}50%\n{TIME}100%\n{TIME}no end\n", done.stdout), done.stdout
    assert (jobs.folder / "logs/rank.0/stdout").read_bytes() == b"50%\r100%\nno end"
