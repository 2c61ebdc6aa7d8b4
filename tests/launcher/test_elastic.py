"""--elastic: a rank that failed is started again alone, while the others go on.

How it joins them, which needs torch: tests/torch/test_elastic_training.py.
Floor: tests.
"""

import shutil
import signal
from pathlib import Path

import pytest
from job_runner import Jobs, wait_for
from rdmacoll.launcher.agent.losses import Losses
from rdmacoll.launcher.base.cause import Why
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.report import Failure

ONE_HOST = ["-np", "3"]
TWO_HOSTS = ["-np", "3", "-H", "localhost:1,127.0.0.1:2"]
both = pytest.mark.parametrize("options", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])

# What all scripts begin with. `seen` waits for a file of another rank.
HEAD = """
    import os, signal, sys, time
    from pathlib import Path
    from client import connect, exchange, hello
    rank, number = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    def seen(name):
        while not Path(name).exists():
            time.sleep(0.01)
    def die():
        os.kill(os.getpid(), signal.SIGKILL)
    print("start", number, os.environ["RDMACOLL_ELASTIC"], flush=True)
"""


def run(jobs: Jobs, text: str, *options: str) -> tuple[int, list[str], str]:
    shutil.copy(Path(__file__).with_name("client.py"), jobs.folder)
    done = jobs.run_script(HEAD + text, *options, "--elastic")
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


@both
def test_a_rank_is_started_again_alone(jobs: Jobs, options: list[str]) -> None:
    text = """
    if number == 0:
        exchange(b"payload")
        if rank == 1:
            die()
        seen("back")
    Path("back").touch()
    """
    code, said, errors = run(jobs, text, *options, "--min-np", "2", "--max-restarts", "1")
    assert code == 0, errors
    starts = [f"[{rank}]: start 0 starts" for rank in range(3)]
    assert said == sorted([*starts, "[1]: start 1 joins"])
    assert "was killed by SIGKILL\n" in errors
    assert "rdmarun: 2 of 3 ranks are left and go on (--min-np)\n" in errors
    assert errors.count("rdmarun: starting rank 1 again (restart 1 of 1)\n") == 1


@both
def test_before_the_first_group_it_is_one_of_those_who_make_it(
    jobs: Jobs, options: list[str]
) -> None:
    text = """
    if number == 0 and rank == 1:
        die()
    print("payloads", len(exchange(b"payload")))
    """
    code, said, errors = run(jobs, text, *options, "--min-np", "2", "--max-restarts", "1")
    assert code == 0, errors
    assert "[1]: start 1 starts" in said
    assert [f"[{rank}]: payloads 3" in said for rank in range(3)] == [True] * 3


def test_no_more_than_max_restarts(jobs: Jobs) -> None:
    text = """
    if number == 0:
        exchange(b"payload")
    if rank == 1:
        Path(f"died{number}").touch()
        die()
    seen("died2")
    time.sleep(0.5)  # for a third start to show
    print("went on")
    """
    code, said, errors = run(jobs, text, *ONE_HOST, "--min-np", "2", "--max-restarts", "2")
    assert code == 0, errors
    assert [line for line in said if line.startswith("[1]")] == [
        "[1]: start 0 starts",
        "[1]: start 1 joins",
        "[1]: start 2 joins",
    ]
    assert errors.count("starting rank 1 again") == 2
    assert said.count("[0]: went on") == said.count("[2]: went on") == 1


# Rank 1 dies and is started again; then rank 2 dies.
ANOTHER_LOSS = """
    if number == 0:
        exchange(b"payload")
        if rank == 1:
            die()
        seen("back")
        if rank == 2:
            die()
    if number == 1:
        if {joins}:
            with connect() as agent:
                agent.sendall(hello(b"", magic=b"RDMACOLJ"))
                assert agent.recv(1) == b""
        Path("back").touch()
    if number == 2:
        Path("end").touch()
    seen("end")
"""


@both
def test_who_has_joined_is_one_of_those_that_are_left(jobs: Jobs, options: list[str]) -> None:
    text = ANOTHER_LOSS.format(joins=True)
    code, said, errors = run(jobs, text, *options, "--min-np", "2", "--max-restarts", "2")
    assert code == 0, errors
    assert "starting rank 1 again (restart 1 of 2)" in errors
    assert "starting rank 2 again (restart 2 of 2)" in errors
    assert errors.count("2 of 3 ranks are left") == 2
    assert "[2]: start 2 joins" in said


@both
def test_who_has_not_joined_does_not_count(jobs: Jobs, options: list[str]) -> None:
    text = ANOTHER_LOSS.format(joins=False)
    code, said, errors = run(jobs, text, *options, "--min-np", "2", "--max-restarts", "2")
    assert code == 0, errors
    assert "starting rank 1 again (restart 1 of 2)" in errors
    assert "starting all ranks again (restart 2 of 2)" in errors
    assert [f"[{rank}]: start 2 starts" in said for rank in range(3)] == [True] * 3


def test_too_few_are_left_and_none_may_be_started(jobs: Jobs) -> None:
    text = ANOTHER_LOSS.format(joins=False)
    code, _, errors = run(jobs, text, *ONE_HOST, "--min-np", "2", "--max-restarts", "1")
    assert code == 128 + signal.SIGKILL
    assert "then rank 2 on " in errors


def test_ctrl_c_ends_who_was_started_again(jobs: Jobs) -> None:
    text = """
        import os, signal, time
        if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        print("up", flush=True)
        time.sleep(1000)
    """
    options = ["-np", "2", "--min-np", "1", "--max-restarts", "9", "--elastic"]
    process = jobs.start(*options, jobs.script(text))
    assert process.stdout is not None and process.stderr is not None
    assert {process.stdout.readline() for _ in range(2)} == {"[0]: up\n", "[1]: up\n"}
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 128 + signal.SIGINT
    assert process.stderr.read().count("again") == 1
    wait_for(lambda: not jobs.processes(), "the end of all processes")


def test_what_it_needs(jobs: Jobs) -> None:
    for options, says in (
        (["--max-restarts", "1"], "--elastic with no --min-np of the 3 ranks of -np: say how many"),
        (["--min-np", "3", "--max-restarts", "1"], "--elastic with --min-np 3 of the 3 ranks"),
        (["--min-np", "2"], "--elastic with --max-restarts 0: say how many times"),
    ):
        done = jobs.run(*ONE_HOST, "--elastic", *options, "script.py")
        assert done.returncode == 2
        assert says in done.stderr


def failure(rank: int, time_ns: int) -> Failure:
    return Failure(rank, "host", 1, -9, time_ns, [])


def test_all_hosts_give_the_same_answers() -> None:
    hosts = [Host("a", 2), Host("b", 2)]
    job = Job(hosts, [], "/", {}, "id", 1.0, min_np=1, max_restarts=3, elastic=True)
    a, b = Losses(job, 0, 1), Losses(job, 1, 1)  # all were started again once
    a.add(failure(0, 10))
    b.add(failure(2, 5))
    b.add(failure(3, 7))
    assert b.unanswered == {2, 3}
    answers = [losses.answer([1, 2], may_restart=True) for losses in (a, b)]
    assert [[(of.rank, number) for of, number in one] for one in answers] == [
        [(0, 2)],
        [(2, 3), (3, None)],
    ]
    assert (a.restarts, b.restarts, b.unanswered) == (3, 3, set())
    assert (b.missing, b.cause.why, b.cause.rank) == (2, Why.FAILED, 2)
    b.back([2])
    assert (b.missing, b.cause.rank) == (1, 3)
    b.back([3])
    assert b.cause.why is Why.RUNNING
