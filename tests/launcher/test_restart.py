"""Jobs that outlive a rank's failure: --min-np goes on without it, --max-restarts starts all again.

Floor: tests.
"""

import fcntl
import os
import signal
import termios
from array import array

import psutil
import pytest
from job_runner import Jobs, wait_for

ONE_HOST = ["-np", "3"]
TWO_HOSTS = ["-np", "3", "-H", "localhost:1,127.0.0.1:2"]
both = pytest.mark.parametrize("options", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])

# Rank 1 dies; the others end a second after that, so that a job that ends them all would show.
ONE_DIES = """
    import os, signal, sys, time
    from pathlib import Path
    if os.environ["RANK"] == "1":
        Path("dead").touch()
        print("last words", file=sys.stderr)
        os.kill(os.getpid(), signal.SIGKILL)
    while not Path("dead").exists():
        time.sleep(0.01)
    time.sleep(1)
    print("went on")
"""

# Everybody fails until the attempt that the first argument names.
FAILS_UNTIL = """
    import os, sys
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    most = os.environ["TORCHELASTIC_MAX_RESTARTS"]
    print(f"attempt {attempt} of {most} at {os.environ['MASTER_PORT']}", flush=True)
    if os.environ["RANK"] == "1" and attempt < int(sys.argv[1]):
        sys.exit(5)
"""


@both
def test_the_others_go_on_while_enough_are_left(jobs: Jobs, options: list[str]) -> None:
    done = jobs.run_script(ONE_DIES, *options, "--min-np", "2")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0]: went on", "[2]: went on"]
    assert "rdmarun: rank 1 on " in done.stderr
    assert "was killed by SIGKILL; the last lines of its stderr:\n" in done.stderr
    assert "rdmarun:     last words\n" in done.stderr
    assert "rdmarun: 2 of 3 ranks are left and go on (--min-np)\n" in done.stderr


@both
def test_too_few_are_left(jobs: Jobs, options: list[str]) -> None:
    done = jobs.run_script(ONE_DIES, *options, "--min-np", "3")
    assert done.returncode == 128 + signal.SIGKILL
    assert "went on" not in done.stdout
    assert "are left" not in done.stderr


def test_the_second_failure_is_one_too_many(jobs: Jobs) -> None:
    text = """
        import os, sys, time
        from pathlib import Path
        rank = int(os.environ["RANK"])
        if rank == 2:
            while not Path("first").exists():
                time.sleep(0.01)
            time.sleep(1)
        if rank > 0:
            Path("first").touch()
            sys.exit(rank)
        time.sleep(1000)
    """
    done = jobs.run_script(text, *ONE_HOST, "--min-np", "2")
    assert done.returncode == 1  # the first's
    assert "2 of 3 ranks are left and go on" in done.stderr
    assert "then rank 2 on " in done.stderr


def test_ctrl_c_after_a_failure_that_was_lived_with(jobs: Jobs) -> None:
    text = """
        import os, signal, time
        from pathlib import Path
        if os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1000)
    """
    process = jobs.start(*ONE_HOST, "--min-np", "1", jobs.script(text))
    assert process.stderr is not None
    seen = ""
    while "are left" not in seen:
        seen += process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 128 + signal.SIGINT
    assert "stopped by SIGINT" in process.stderr.read()
    wait_for(lambda: not jobs.processes(), "the end of all processes")


@both
def test_all_ranks_are_started_again(jobs: Jobs, options: list[str]) -> None:
    done = jobs.run(*options, "--max-restarts", "3", jobs.script(FAILS_UNTIL), "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for attempt in range(3):
        of_attempt = [line for line in lines if f"attempt {attempt} of 3 " in line]
        assert {line[:4] for line in of_attempt} >= {"[1]:"}
        assert len({line.split()[-1] for line in of_attempt}) == 1, "different stores"
    assert sum("attempt 2 " in line for line in lines) == 3
    assert done.stderr.count("rank 1 on ") == 2
    for restart in ("1 of 3", "2 of 3"):
        assert f"rdmarun: starting all ranks again (restart {restart})\n" in done.stderr


def test_after_the_last_restart_the_job_has_failed(jobs: Jobs) -> None:
    done = jobs.run(*ONE_HOST, "--max-restarts", "1", jobs.script(FAILS_UNTIL), "9")
    assert done.returncode == 5
    assert done.stderr.count("starting all ranks again") == 1
    assert "attempt 2" not in done.stdout


def test_restarts_add_to_the_files(jobs: Jobs) -> None:
    folder = jobs.folder / "out"
    (folder / "rank.1").mkdir(parents=True)
    (folder / "rank.1/stdout").write_text("of another job\n")
    script = jobs.script(FAILS_UNTIL)
    options = ["--max-restarts", "1", "--output-filename", "out"]
    assert jobs.run(*ONE_HOST, *options, script, "1").returncode == 0
    lines = (folder / "rank.1/stdout").read_text().splitlines()
    assert [line[:9] for line in lines] == ["attempt 0", "attempt 1"]


def test_ctrl_c_restarts_nothing(jobs: Jobs) -> None:
    text = """
        import os, time
        print("up", flush=True)
        time.sleep(1000)
    """
    process = jobs.start("-np", "1", "--max-restarts", "5", jobs.script(text))
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == "[0]: up\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 128 + signal.SIGINT
    assert "again" not in process.stderr.read()
    wait_for(lambda: not jobs.processes(), "the end of all processes")


def test_ctrl_c_that_comes_with_a_failure_restarts_nothing(jobs: Jobs) -> None:
    """Agent 0 hears of both at once, as it is stopped. Either may count as the cause."""
    text = """
        import os, sys, time
        from pathlib import Path
        Path("pids." + os.environ["RANK"]).write_text(f"{os.getpid()} {os.getppid()}")
        Path("up." + os.environ["RANK"]).touch()
        while os.environ["RANK"] == "0" or not Path("fail").exists():
            time.sleep(0.01)
        sys.exit(5)
    """
    process = jobs.start(*TWO_HOSTS, "--max-restarts", "5", jobs.script(text))
    wait_for(lambda: len(jobs.files("up.*")) == 3, "the ranks")
    pids = [tuple(map(int, path.read_text().split())) for path in jobs.files("pids.*")]
    agent = pids[0][1]
    os.kill(agent, signal.SIGSTOP)
    (jobs.folder / "fail").touch()
    wait_for(lambda: not psutil.pid_exists(pids[1][0]), "the other agent's look at its rank")
    process.send_signal(signal.SIGINT)
    with open(f"/proc/{agent}/fd/0", "rb") as control:
        wait_for(lambda: unread(control.fileno()) > 0, "what rdmarun tells agent 0")
    os.kill(agent, signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "again" not in err


def unread(pipe: int) -> int:
    count = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def test_bad_numbers(jobs: Jobs) -> None:
    for options, says in (
        (["--min-np", "4"], "--min-np 4 is more than the 3 ranks of -np"),
        (["--min-np", "0"], "0 is not a positive number"),
        (["--max-restarts", "-1"], "'-1' is no whole number"),
    ):
        done = jobs.run(*ONE_HOST, *options, "script.py")
        assert done.returncode == 2
        assert says in done.stderr
