"""Every byte of the ranks' output reaches whoever reads, fast, slow or late, and of any kind.

Floor: tests.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import backlog
import pytest
from backlog import FLOODS, LINE_BYTES, WRITES, Ends, nightly
from job_runner import Jobs, both

MORE_THAN_IS_HELD_BYTES = 50 << 20  # of both ranks: by pipes, agents and rdmarun
A_LITTLE_BYTES = 4 << 20

KINDS = {
    "pipe": backlog.make_pipe,
    "pipe that does not block": backlog.make_nonblocking_pipe,
    "socket": backlog.make_socket,
    "terminal": backlog.make_terminal,
    "file": backlog.make_file,
}


def late() -> Callable[[], None]:
    naps = iter([2.0])
    return lambda: time.sleep(next(naps, 0))


PACES: dict[str, Callable[[], Callable[[], None]]] = {
    "fast": lambda: lambda: None,
    "slow": lambda: lambda: time.sleep(0.0003),
    "late": late,
}


def check(
    jobs: Jobs, options: list[str], make: Callable[[Path], Ends], pace: str, size: int, to: str
) -> None:
    """Every line arrives, and the flags of our end are as they were: others share them."""
    ends = make(jobs.folder)
    flags = fcntl.fcntl(ends.write, fcntl.F_GETFL)
    count = size // LINE_BYTES // 2
    args = [*options, jobs.script(WRITES), str(count), to]
    other = os.open(jobs.folder / "other", os.O_WRONLY | os.O_CREAT)
    streams = (ends.write, other) if to == "stdout" else (other, ends.write)
    process = backlog.start(jobs, args, *streams)
    ended: list[tuple[int, int]] = []
    is_file = make is backlog.make_file

    def end() -> None:
        try:
            ended.append((backlog.wait(process), fcntl.fcntl(ends.write, fcntl.F_GETFL)))
        finally:
            os.close(ends.write)  # so that the reader comes to its end

    ender = threading.Thread(target=end)
    ender.start()
    if is_file:
        ender.join()
    output = backlog.read_all(ends.read, PACES[pace]())
    ender.join()
    os.close(ends.read)
    os.close(other)
    output = b"".join(
        line for line in output.splitlines(keepends=True) if not line.startswith(b"rdmarun: ")
    )
    assert ended == [(0, flags)]
    backlog.assert_whole(output, count)


@both
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(jobs: Jobs, options: list[str], kind: str) -> None:
    check(jobs, options, KINDS[kind], "fast", A_LITTLE_BYTES, "stdout")


@both
def test_late(jobs: Jobs, options: list[str]) -> None:
    check(jobs, options, backlog.make_pipe, "late", MORE_THAN_IS_HELD_BYTES, "stdout")


@nightly
@both
@pytest.mark.parametrize("to", ["stdout", "stderr"])
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_at_every_pace(
    jobs: Jobs, options: list[str], kind: str, pace: str, to: str
) -> None:
    check(jobs, options, KINDS[kind], pace, MORE_THAN_IS_HELD_BYTES, to)


@both
def test_without_a_reader_the_ranks_wait(jobs: Jobs, options: list[str]) -> None:
    ends = backlog.make_pipe(jobs.folder)
    process = backlog.start(jobs, [*options, jobs.script(FLOODS)], ends.write)
    os.close(ends.write)
    held = backlog.wait_until_backed_up(jobs)
    # 8 MiB in each agent and in rdmarun, and less than 2 in pipes and in mpiexec.
    assert 8 << 20 < held < 28 << 20
    os.close(ends.read)
    assert backlog.wait(process) == 128 + 13
