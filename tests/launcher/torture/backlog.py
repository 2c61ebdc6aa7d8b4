"""Jobs that write more than anybody reads, and readers of every kind.

Floor: tests.
"""

import errno
import os
import pty
import re
import signal
import socket
import subprocess
import time
import tty
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from job_runner import LIMIT_S, Jobs, command_of, wait_for

nightly = pytest.mark.nightly

# Each rank writes as many lines as the first argument says to the stream that the second one names.
WRITES = """
    import os, sys
    rank, out = os.environ["RANK"], getattr(sys, sys.argv[2]).buffer
    for n in range(int(sys.argv[1])):
        out.write(b"%s %08d %s\\n" % (rank.encode(), n, b"x" * (n % 120)))
"""
LINE_BYTES = 71  # on average

# Each rank writes for ever, and counts in a file the bytes that the pipe has taken.
FLOODS = """
    import os
    rank = os.environ["RANK"]
    count = os.open(f"count.{rank}", os.O_WRONLY | os.O_CREAT)
    total, block = 0, b"y" * 1023 + b"\\n"
    while True:
        total += os.write(1, block)
        os.pwrite(count, b"%012d" % total, 0)
"""


def lines_of(rank: int, count: int) -> list[bytes]:
    return [b"%d %08d %s" % (rank, n, b"x" * (n % 120)) for n in range(count)]


def assert_whole(output: bytes, count: int) -> None:
    """Every byte of both ranks is there, each rank's in its order, and no line is torn."""
    by_rank: dict[bytes, list[bytes]] = {b"0": [], b"1": []}
    for line in output.splitlines():
        match = re.fullmatch(rb"\[(\d)\]: (.*)", line)
        assert match is not None, line[:200]
        by_rank[match[1]].append(match[2])
    for rank in range(2):
        assert by_rank[b"%d" % rank] == lines_of(rank, count)


@dataclass
class Ends:
    write: int
    read: int


def make_pipe(_: Path) -> Ends:
    read, write = os.pipe()
    return Ends(write, read)


def make_nonblocking_pipe(_: Path) -> Ends:
    read, write = os.pipe()
    os.set_blocking(write, False)
    return Ends(write, read)


def make_socket(_: Path) -> Ends:
    ours, theirs = socket.socketpair()
    return Ends(theirs.detach(), ours.detach())


def make_terminal(_: Path) -> Ends:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # or it would add a \r to each \n
    return Ends(theirs, ours)


def make_file(folder: Path) -> Ends:
    path = folder / "output"
    return Ends(os.open(path, os.O_WRONLY | os.O_CREAT), os.open(path, os.O_RDONLY))


def read_all(fd: int, pace: Callable[[], None] = lambda: None) -> bytes:
    pieces: list[bytes] = []
    while True:
        pace()
        try:
            data = os.read(fd, 1 << 16)
        except OSError as error:  # the end of a terminal that nobody has open any more
            assert error.errno == errno.EIO
            data = b""
        if not data:
            return b"".join(pieces)
        pieces.append(data)


def start(
    jobs: Jobs, args: Sequence[str | bytes], stdout: int, stderr: int | None = None, **env: str
) -> "subprocess.Popen[bytes]":
    """Starts rdmarun. By default its standard error goes to the file `errors`."""
    with (jobs.folder / "errors").open("wb") as errors:
        return subprocess.Popen(
            [*jobs.rdmarun, *args],
            cwd=jobs.folder,
            env=jobs.env(env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=errors if stderr is None else stderr,
        )


def errors_of(jobs: Jobs) -> str:
    return (jobs.folder / "errors").read_text()


def counts(jobs: Jobs) -> list[int]:
    return [int(path.read_bytes() or b"0") for path in jobs.files("count.*")]


def assert_as_counted(jobs: Jobs, output: bytes) -> None:
    """The ranks have counted all output: each but for one write, after which it may have ended."""
    came = len(output.replace(b"[0]: ", b"").replace(b"[1]: ", b""))
    assert 0 <= came - sum(counts(jobs)) <= 2 * 1024


def wait_until_backed_up(jobs: Jobs) -> int:
    """Returns once both ranks are blocked: how many bytes they have written."""
    seen, since = [0], time.monotonic()
    deadline = since + LIMIT_S
    while len(seen) < 2 or time.monotonic() - since < 0.7:
        assert time.monotonic() < deadline, f"the ranks still write: {seen}"
        time.sleep(0.05)
        # A process that is ready to run only waits for a core.
        if (now := counts(jobs)) != seen or any(is_running(one) for one in jobs.processes()):
            seen, since = now, time.monotonic()
    return sum(seen)


def is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_RUNNING)
    except psutil.NoSuchProcess:
        return False


def process_of(jobs: Jobs, role: str) -> psutil.Process:
    """rdmarun, a subreaper or an agent, found by its command line."""

    def is_agent(command: list[str]) -> bool:
        return any("launcher.agent.main" in word for word in command)

    found = {}
    for process in jobs.processes():
        command = command_of(process)
        if is_agent(command) and "mpiexec" not in command[0]:
            found["agent" if is_agent(command_of(process.parent())) else "subreaper"] = process
        elif "rdmacoll.launcher" in command:
            found["rdmarun"] = process
    return found[role]


def ranks_are_gone(jobs: Jobs) -> bool:
    commands = map(command_of, jobs.processes())
    return not any(command[1:2] == [str(jobs.folder / "script.py")] for command in commands)


def wait(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        pytest.fail("rdmarun did not end")


def wait_until_ranks_are_gone(jobs: Jobs) -> None:
    wait_for(lambda: ranks_are_gone(jobs), "the end of the ranks")
