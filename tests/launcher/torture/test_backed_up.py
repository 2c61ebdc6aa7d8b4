"""Signals and deaths while nobody reads the output, so that the ranks are blocked in their writes.

Floor: tests.
"""

import os
import signal

import backlog
import pytest
from backlog import FLOODS, nightly
from job_runner import LIMIT_S, ONE_HOST, Jobs, both, wait_for

# Rank 0 floods. Rank 1 runs $DO once the file `now` exists.
ONE_FLOODS = FLOODS.replace(
    "    while True:",
    """    import time
    while rank == "1":
        time.sleep(0.01)
        if os.path.exists("now"):
            exec(os.environ["DO"])
    while True:""",
)


@both
@pytest.mark.parametrize(
    "sig",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=nightly),
        pytest.param(signal.SIGHUP, marks=nightly),
    ],
)
def test_a_signal_ends_the_job(jobs: Jobs, options: list[str], sig: signal.Signals) -> None:
    """A reader that comes afterwards still gets the output that was held."""
    ends = backlog.make_pipe(jobs.folder)
    process = backlog.start(jobs, [*options, jobs.script(FLOODS)], ends.write)
    os.close(ends.write)
    backlog.wait_until_backed_up(jobs)
    process.send_signal(sig)
    backlog.wait_until_ranks_are_gone(jobs)
    output = backlog.read_all(ends.read)
    os.close(ends.read)
    assert backlog.wait(process) == 128 + sig
    assert f"stopped by {sig.name}" in backlog.errors_of(jobs)
    backlog.assert_as_counted(jobs, output)


@both
@pytest.mark.parametrize("twice", [pytest.param(False, marks=nightly), True])
def test_a_signal_and_nobody_ever_reads(jobs: Jobs, options: list[str], twice: bool) -> None:
    ends = backlog.make_pipe(jobs.folder)
    process = backlog.start(jobs, [*options, jobs.script(FLOODS)], ends.write)
    os.close(ends.write)
    backlog.wait_until_backed_up(jobs)
    process.send_signal(signal.SIGINT)
    if twice:
        backlog.wait_until_ranks_are_gone(jobs)
        process.send_signal(signal.SIGINT)
    assert backlog.wait(process) == 128 + signal.SIGINT
    assert "bytes of output are lost: nobody reads them" in backlog.errors_of(jobs)
    os.close(ends.read)
    jobs.assert_none_left()


def test_a_sigpipe_from_outside_ends_nothing(jobs: Jobs) -> None:
    process = jobs.start("-np", "1", jobs.script("import time; print('up'); time.sleep(1)"))
    assert process.stdout is not None
    assert process.stdout.readline() == "[0]: up\n"
    process.send_signal(signal.SIGPIPE)
    assert process.wait(LIMIT_S) == 0


@both
@pytest.mark.parametrize(
    ("do", "status"),
    [("os.kill(os.getpid(), 9)", 137), pytest.param("os._exit(7)", 7, marks=nightly)],
    ids=["killed", "exit"],
)
def test_a_rank_that_fails_ends_the_others(
    jobs: Jobs, options: list[str], do: str, status: int
) -> None:
    ends = backlog.make_pipe(jobs.folder)
    process = backlog.start(jobs, [*options, jobs.script(ONE_FLOODS)], ends.write, DO=do)
    os.close(ends.write)
    wait_for(lambda: sum(backlog.counts(jobs)) > 8 << 20, "the flood")
    (jobs.folder / "now").touch()
    backlog.wait_until_ranks_are_gone(jobs)  # before anybody has read anything
    output = backlog.read_all(ends.read)
    os.close(ends.read)
    assert backlog.wait(process) == status
    backlog.assert_as_counted(jobs, output)
    assert "rdmarun: rank 1 on " in backlog.errors_of(jobs)


@nightly
@both
@pytest.mark.parametrize("role", ["rdmarun", "subreaper", "agent"])
def test_kill(jobs: Jobs, options: list[str], role: str) -> None:
    ends = backlog.make_pipe(jobs.folder)
    process = backlog.start(jobs, [*options, jobs.script(FLOODS)], ends.write)
    os.close(ends.write)
    backlog.wait_until_backed_up(jobs)
    backlog.process_of(jobs, role).kill()
    if options == ONE_HOST:  # mpiexec, where there is one, notices nothing until somebody reads
        backlog.wait_until_ranks_are_gone(jobs)
    backlog.read_all(ends.read)
    os.close(ends.read)
    assert backlog.wait(process) != 0
    jobs.assert_none_left()


@both
@pytest.mark.parametrize("stream", [1, pytest.param(2, marks=nightly)], ids=["stdout", "stderr"])
def test_the_reader_leaves(jobs: Jobs, options: list[str], stream: int) -> None:
    ends = backlog.make_pipe(jobs.folder)
    text = FLOODS.replace("os.write(1, ", f"os.write({stream}, ")
    other = os.open(os.devnull, os.O_WRONLY)
    streams = (ends.write, other) if stream == 1 else (other, ends.write)
    process = backlog.start(jobs, [*options, jobs.script(text)], *streams)
    os.close(ends.write)
    os.close(other)
    os.read(ends.read, 1)
    os.close(ends.read)
    assert backlog.wait(process) == 128 + signal.SIGPIPE
    jobs.assert_none_left()
