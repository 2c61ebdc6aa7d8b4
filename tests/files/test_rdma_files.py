"""Files at the servers: modules of cases, and fsspec's own tests (fsspec_suite.py).

Floor: tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import ModuleType

import change_cases
import file_cases
import pytest
import table_cases
from case_job import Outcomes, cases_of
from job_runner import Jobs, clean_jobs

CASES = [
    pytest.param(module, case, id=case)
    for module in (file_cases, change_cases, table_cases)
    for case in cases_of(module)
]


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[ModuleType], Outcomes]]:
    """A job for each module of cases."""
    with ExitStack() as stack:

        @cache
        def of(module: ModuleType) -> Outcomes:
            jobs = stack.enter_context(clean_jobs(tmp_path_factory.mktemp("job")))
            return Outcomes(jobs, module, workers=2, servers=2)

        yield of


@pytest.mark.parametrize(("module", "case"), CASES)
def test_files(outcomes: Callable[[ModuleType], Outcomes], module: ModuleType, case: str) -> None:
    outcomes(module).check(case)


FULL = """
import fsspec
import torch.distributed as dist

dist.init_process_group("rdma")
fs = fsspec.filesystem("rdma")
fs.pipe_file("small", b"x" * (20 << 20))
try:
    fs.pipe_file("large", bytes(100 << 20))
except OSError as error:
    print("refused:", error)
assert fs.ls("", detail=False) == ["small"]
assert fs.cat_file("small") == b"x" * (20 << 20)
for number in range(100):  # of the same buckets as what was refused, some of them
    fs.pipe_file(f"after/{number}", b"%d" % number)
for number in range(100):
    assert fs.cat_file(f"after/{number}") == b"%d" % number
dist.destroy_process_group()
"""


def test_without_room(jobs: Jobs) -> None:
    options = ["-np", "1", "--servers", "2", "--server-memory", "100M"]
    done = jobs.run_script(FULL, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused: " in done.stdout and "has no room" in done.stdout, done.stdout


LOST = """
import os, signal
import fsspec
import torch.distributed as dist
from rdmacoll import ps

dist.init_process_group("rdma")
fs = fsspec.filesystem("rdma")
for number in range(40):
    fs.pipe_file(f"kept/{number}", b"%d" % number * 100_000)
    if number == 20:
        os.kill(ps.stats().servers[1].pid, signal.SIGKILL)
for number in range(40):
    assert fs.cat_file(f"kept/{number}") == b"%d" % number * 100_000
dist.destroy_process_group()
"""


def test_a_server_is_lost(jobs: Jobs) -> None:
    """Nothing that was closed is, and files are written on."""
    done = jobs.run_script(LOST, "-np", "1", "--servers", "3")
    assert done.returncode == 0, done.stdout + done.stderr


STOPPED = """
import os, signal, threading
import fsspec
import torch.distributed as dist
from rdmacoll import ps

dist.init_process_group("rdma")
fs = fsspec.filesystem("rdma", timeout=1000)
fs.pipe_file("kept", b"a" * (40 << 20))
servers = [server.pid for server in ps.stats().servers]
for pid in servers:
    os.kill(pid, signal.SIGSTOP)

def write():
    with fs.open("never", "wb") as file:
        file.write(bytes(200 << 20))

def change():
    with fs.open("kept", "r+b") as file:
        file.seek(20 << 20)
        file.write(b"never")

for call in write, change, lambda: fs.cat_file("kept"):
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        print("was interrupted", flush=True)
for pid in servers:
    os.kill(pid, signal.SIGCONT)
assert fs.ls("", detail=False) == ["kept"] and fs.cat_file("kept") == b"a" * (40 << 20)
for number in range(10):
    fs.pipe_file("after", bytes([number]) * (20 << 20))
    assert fs.cat_file("after") == bytes([number]) * (20 << 20)
dist.destroy_process_group()
"""


def test_servers_stand_still_and_the_user_gives_up(jobs: Jobs) -> None:
    """Ctrl-C ends what waits for them. Once they go on, all is as it was."""
    done = jobs.run_script(STOPPED, "-np", "1", "--servers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("was interrupted") == 3, done.stdout + done.stderr


LOST_PROCESSES = """
import errno, os, signal, time
from pathlib import Path
import fsspec
import torch.distributed as dist
from rdmacoll import ps

RANK = int(os.environ["RANK"])
dist.init_process_group("rdma")
fs = fsspec.filesystem("rdma")

def say(word):
    Path(f"{word}.new").write_text(str(os.getpid()))
    Path(f"{word}.new").rename(word)

def wait_for(condition):
    until = time.monotonic() + 50
    while not condition():
        assert time.monotonic() < until, (condition, ps.stats())
        time.sleep(0.05)

def heard(word):
    wait_for(Path(word).exists)
    return int(Path(word).read_text())

def tables():
    return max(one.tables for one in ps.stats().servers if one.state == "serves")

if RANK == 0:
    fs.pipe_file("kept", bytes(3 << 20))
    say("begun")
    lost, stopped = heard("wrote 1"), heard("wrote 2")
    fs.pipe_file("kept", b"another")
    wait_for(lambda: tables() >= 4)
    os.kill(ps.stats().servers[0].pid, signal.SIGKILL)  # the one that frees them
    os.kill(lost, signal.SIGKILL)
    os.kill(stopped, signal.SIGSTOP)
    wait_for(lambda: tables() == 1)
    say("go on")
    os.kill(stopped, signal.SIGCONT)
    heard("was told")
    assert fs.ls("", detail=False) == ["kept"] and fs.cat_file("kept") == b"another"
    wait_for(lambda: tables() == 1)
    print("all is freed", flush=True)
    say("ended")
else:
    heard("begun")
    file = fs.open("kept", "rb")
    file.read(10)
    writer = fs.open(f"never {RANK}", "wb")
    writer.write(bytes(17 << 20))
    say(f"wrote {RANK}")
    wait_for(lambda: RANK == 2 and Path("go on").exists())
    for refused in writer.close, file.read:
        try:
            refused()
        except OSError as error:
            assert error.errno == errno.ESTALE, error
        else:
            raise AssertionError("it was not refused")
    file.close()
    say("was told")
    heard("ended")
os._exit(0)
"""


def test_processes_are_lost(jobs: Jobs) -> None:
    """With what they had open and were writing, and the server that frees it. One is only stopped:
    it is told when it goes on."""
    done = jobs.run_script(LOST_PROCESSES, "-np", "3", "--min-np", "2", "--servers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all is freed" in done.stdout


def test_fsspecs_own_suite(jobs: Jobs) -> None:
    suite = str(Path(__file__).with_name("fsspec_suite.py"))
    pytest_options = ["-q", "-p", "no:cacheprovider"]
    done = jobs.run(
        *("-np", "1", "--servers", "1"), *(jobs.python, "-m", "pytest", *pytest_options, suite)
    )
    assert done.returncode == 0, done.stdout
    summary = re.search(r"(\d+) passed.* in ", done.stdout)
    assert summary is not None and int(summary[1]) >= 130, done.stdout
    assert "skipped" not in summary[0] and "failed" not in summary[0], done.stdout
