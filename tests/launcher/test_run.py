"""Whole jobs that go well: what ranks are given, and where their output goes.

Floor: tests.
"""

import json
import os
import sys
from io import TextIOWrapper
from pathlib import Path

import pytest
from job_runner import Jobs

SHOW_ENV = """
    import json, os, sys
    keys = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR"]
    print(json.dumps([os.environ[key] for key in keys]))
"""


def envs(output: str) -> list[list[str]]:
    return sorted(json.loads(line.partition(": ")[2]) for line in output.splitlines())


@pytest.mark.parametrize("world", [1, 2, 4])
def test_ranks_of_one_host(jobs: Jobs, world: int) -> None:
    done = jobs.run_script(SHOW_ENV, "-np", str(world))
    assert done.returncode == 0
    n = str(world)
    assert envs(done.stdout) == [[str(r), n, str(r), n, "0", "127.0.0.1"] for r in range(world)]


def test_ranks_of_two_hosts(jobs: Jobs) -> None:
    done = jobs.run_script(SHOW_ENV, "-np", "3", "-H", "localhost:2,127.0.0.1:1")
    assert done.returncode == 0
    assert envs(done.stdout) == [
        ["0", "3", "0", "2", "0", "127.0.0.1"],
        ["1", "3", "1", "2", "0", "127.0.0.1"],
        ["2", "3", "0", "1", "1", "127.0.0.1"],
    ]


def test_hostfile(jobs: Jobs) -> None:
    (jobs.folder / "hosts").write_text("localhost slots=1\n127.0.0.1:1\n")
    done = jobs.run_script(SHOW_ENV, "-np", "2", "--hostfile", "hosts")
    assert [env[4] for env in envs(done.stdout)] == ["0", "1"]


def test_arguments_and_folder_are_the_scripts(jobs: Jobs) -> None:
    script = jobs.script("import os, sys; print(sys.argv[1:], os.getcwd())")
    done = jobs.run("-np", "1", script, "-np", "7", "--verbose", "a b")
    assert done.stdout == f"[0]: ['-np', '7', '--verbose', 'a b'] {jobs.folder}\n"


def test_module(jobs: Jobs) -> None:
    jobs.script("import sys; print(__name__, sys.argv[1:])", "mod.py")
    done = jobs.run("-np", "1", "-m", "mod", "--flag")
    assert done.stdout == "[0]: __main__ ['--flag']\n"


def test_environment(jobs: Jobs) -> None:
    script = jobs.script("import os; print(os.environ['A'], os.environ['B'], os.environ['C'])")
    done = jobs.run("-np", "1", "-x", "A=x=y", "--env", "B", script, A="hidden", B="kept", C="too")
    assert done.stdout == "[0]: x=y kept too\n"


def test_no_variable_of_mpi_reaches_a_rank(jobs: Jobs) -> None:
    script = "import os; print([k for k in os.environ if 'PMI' in k or 'HYD' in k])"
    assert jobs.run_script(script, "-np", "1").stdout == "[0]: []\n"


def test_large_environment(jobs: Jobs) -> None:
    variables = {f"LARGE_{n}": "x" * 100_000 for n in range(5)}
    script = jobs.script("import os; print(len(os.environ['LARGE_4']))")
    assert jobs.run("-np", "1", script, **variables).stdout == "[0]: 100000\n"


def test_output_is_tagged_by_line(jobs: Jobs) -> None:
    text = r"""
        import os, sys
        for n in range(200):
            sys.stdout.write(f"line {n} of "); sys.stdout.flush()
            sys.stdout.write(os.environ["RANK"] + "\n")
        sys.stderr.write("50%\r100%\r\nno newline at the end")
    """
    done = jobs.run_script(text, "-np", "2")
    lines = done.stdout.splitlines()
    for rank in range(2):
        mine = [line for line in lines if line.startswith(f"[{rank}]: ")]
        assert mine == [f"[{rank}]: line {n} of {rank}" for n in range(200)]
    assert len(lines) == 400
    assert "[1]: no newline at the end\n" in done.stderr


def test_progress_bars_are_passed_on_as_they_move(jobs: Jobs) -> None:
    script = jobs.script(r"import sys; sys.stderr.write('50%\r100%\r\n')")
    process = jobs.start("-np", "1", script)
    assert isinstance(process.stderr, TextIOWrapper)
    assert process.stderr.buffer.read() == b"[0]: 50%\r[0]: 100%\r\n"
    process.communicate(timeout=60)


def test_untagged_output(jobs: Jobs) -> None:
    assert jobs.run_script("print('plain')", "-np", "2", "--no-tag-output").stdout == "plain\n" * 2


def test_large_output(jobs: Jobs) -> None:
    done = jobs.run_script("print('x' * 900_000)", "-np", "2", "--no-tag-output")
    assert list(map(len, done.stdout.split())) == [900_000] * 2
    done = jobs.run_script("print('x' * 3_000_000)", "-np", "1")
    assert done.stdout == f"[0]: {'x' * 3_000_000}\n"


def test_output_files(jobs: Jobs) -> None:
    text = "import os, sys; print('out', os.environ['RANK']); print('err', file=sys.stderr)"
    done = jobs.run_script(text, "-np", "2", "--output-filename", "logs/run")
    assert sorted(done.stdout.splitlines()) == ["[0]: out 0", "[1]: out 1"]
    assert (jobs.folder / "logs/run/rank.1/stdout").read_text() == "out 1\n"
    assert (jobs.folder / "logs/run/rank.0/stderr").read_text() == "err\n"


def test_a_rank_may_end_before_the_others(jobs: Jobs) -> None:
    text = "import os, time; time.sleep(int(os.environ['RANK']) * 0.5); print('done')"
    done = jobs.run_script(text, "-np", "2", "-H", "localhost:1,127.0.0.1:1")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)


def test_one_thread_each_is_said(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    script = jobs.script("import os; print(os.environ.get('OMP_NUM_THREADS'))")
    done = jobs.run("-np", "2", script)
    assert "OMP_NUM_THREADS" in done.stderr
    assert done.stdout.splitlines()[0].endswith(": 1")
    done = jobs.run("-np", "2", "-x", "OMP_NUM_THREADS=3", script)
    assert "OMP_NUM_THREADS" not in done.stderr
    assert done.stdout.splitlines()[0].endswith(": 3")


def test_standard_input_is_empty(jobs: Jobs) -> None:
    assert jobs.run_script("import sys; print(repr(sys.stdin.read()))", "-np", "1").stdout == (
        "[0]: ''\n"
    )


def test_a_python_before_the_script_is_the_one_that_runs_it(jobs: Jobs) -> None:
    script = jobs.script("import sys; print(sys.executable, sys.flags.optimize, *sys.argv[1:])")
    done = jobs.run("-np", "2", "--no-tag-output", sys.executable, "-O", script, "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{sys.executable} 1 --epochs 3"] * 2


def test_another_python_before_the_script_is_refused(jobs: Jobs, tmp_path: Path) -> None:
    """Its packages may be others than those that the ranks would find."""
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.symlink_to(sys.executable)
    done = jobs.run("-np", "2", "python", "train.py", PATH=f"{other.parent}:{os.environ['PATH']}")
    assert done.returncode == 2
    assert f"python is {other}, but the ranks run in rdmarun's own python, " in done.stderr
    assert done.stdout == ""
