"""The flight recorder of real ranks: asked while a job hangs, written on failure and on SIGUSR2."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripts import finish, start_ranks
from world import backend, host_store

LIMIT_S = 100

START = """
import ctypes, datetime, os, signal, sys, time, torch, torch.distributed as dist
dist.init_process_group("rdma", timeout=datetime.timedelta(seconds=90))
rank = dist.get_rank()
t = torch.ones(1000)
dist.all_reduce(t)
"""
# The last rank comes only when a file appears.
LATE = (
    START
    + """
while rank == dist.get_world_size() - 1 and not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
dist.barrier()
"""
)
# For ever, and with the GIL.
STUCK = START + "ctypes.PyDLL(None).sem_wait(ctypes.create_string_buffer(64))"
FAILS = (
    START
    + """
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=1))
if rank == 0:
    try:
        dist.barrier()
        sys.exit("the barrier ended")
    except RuntimeError as error:
        assert "Timed out" in str(error)
while not os.listdir(os.environ["RDMACOLL_DUMP_DIR"]):
    time.sleep(0.02)
"""
)
# Never more than the recorder holds before the file has it.
UNTIL_KILLED = (
    START
    + """
path = os.environ["RDMACOLL_TIMELINE"].replace("{rank}", str(rank))
called = 1
for _ in range(4):
    for _ in range(30):
        dist.all_reduce(t)
    called += 30
    while not (os.path.exists(path) and f'all_reduce #{called}"' in open(path).read()):
        time.sleep(0.02)
os.kill(os.getpid(), signal.SIGKILL)
"""
)
CALLED = 121
FORKS = (
    START
    + """
from rdmacoll._extension import extension
child = os.fork()
if child == 0:
    os._exit(1 if extension().flight_dump() else 0)
assert os.waitpid(child, 0)[1] == 0
assert extension().flight_dump()
"""
)
# No byte of a stopped process moves over tcp, so what the other begins there hangs.
STOPPED_OWNER = (
    """
import os
rank = int(os.environ["RANK"])
os.environ |= {"RDMACOLL_HOST_ID": f"host{rank}", "RDMACOLL_TRANSPORT": "tcp"}
"""
    + START
    + """
from rdmacoll import remote
exposure = remote.expose(remote.empty(1 << 20, access="rw"), "x", access="rw")
there = remote.open("x", on=1 - rank)
pids = [0, 0]
dist.all_gather_object(pids, os.getpid())
if rank == 0:
    os.kill(pids[0], signal.SIGSTOP)
while open(f"/proc/{pids[0]}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
    time.sleep(0.02)
reading = there.read_async(timeout=90)
exposure.wait_notify(1, timeout=90)
"""
)
NAMELESS = START + """
from rdmacoll import remote
remote.expose(remote.empty(1), "another")
remote.open("nobody's", on=0, timeout=90) if rank == 1 else time.sleep(90)
"""  # fmt: skip
OWN_HANDLER = """
import signal
heard = []
signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
""" + START + """
os.kill(os.getpid(), signal.SIGUSR2)
assert heard == [1]
"""  # fmt: skip


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip(f"{backend()} has another recorder")


@contextlib.contextmanager
def job(script: str, size: int, *arguments: str, **variables: str) -> Iterator[list[int]]:
    """The pids of ranks that run; they are ended with the block."""
    store = host_store()
    ranks = start_ranks(store, script, size, *arguments, **variables)
    try:
        yield [rank.pid for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def debug(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rdmacoll", "debug", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def dump(pids: list[int], *arguments: str) -> subprocess.CompletedProcess[str]:
    return debug("dump", *(f"--pid={pid}" for pid in pids), *arguments)


def wait_for(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def dump_until(pids: list[int], *parts: str) -> str:
    """What `rdmacoll debug dump` says once it says all of this."""
    said = ""

    def says() -> bool:
        nonlocal said
        said = dump(pids).stdout
        return all(part in said for part in parts)

    wait_for(says, lambda: f"{parts} never came:\n{said}")
    return said


def test_a_rank_that_does_not_come_is_named_and_the_job_goes_on(tmp_path: Path) -> None:
    come = tmp_path / "come"
    store = host_store()
    ranks = start_ranks(store, LATE, 3, str(come))
    pids = [rank.pid for rank in ranks]
    try:
        text = dump_until(pids, "MISSING: rank 2 has not called #2", "ranks 0, 1")
        assert "in barrier #2" in text
        assert "its last was all_reduce #1 (3.906 KB, Float32, Sum" in text
        for_torch, trace, kept = tmp_path / "torch", tmp_path / "trace.json", tmp_path / "kept"
        files = (f"--torch={for_torch}", f"--timeline={trace}", f"--out={kept}")
        assert dump(pids, *files).returncode == 0
        assert "missing ranks: {2}" in analysed(for_torch)
        names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
        assert {"all_reduce #1", "barrier #2"} <= names
        assert "MISSING: rank 2 has not called #2" in debug("show", str(kept)).stdout
    finally:
        come.touch()
        ends = [rank.communicate(timeout=LIMIT_S) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], ends


def analysed(folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=True,
    ).stdout


def test_a_rank_that_is_stopped_is_said_not_to_answer(tmp_path: Path) -> None:
    with job(LATE, 2, str(tmp_path / "never")) as pids:
        dump_until(pids, "MISSING: rank 1")
        os.kill(pids[1], signal.SIGSTOP)
        said = dump(pids, "--seconds=1")
        assert said.returncode == 1
        assert f"rank 1 (pid {pids[1]}) did not answer (it is stopped)" in said.stdout
        assert "UNKNOWN: rank 1 did not answer" in said.stdout
        os.kill(pids[1], signal.SIGCONT)
        dump_until(pids, "MISSING: rank 1")


def test_who_reads_from_a_stopped_owner_is_shown(tmp_path: Path) -> None:
    with job(STOPPED_OWNER, 2, RDMACOLL_DUMP_DIR=str(tmp_path)) as pids:
        text = dump_until(pids[1:], "rank 1: remote wait_notify, with any process, for")
        assert "rank 1: remote read of 4 MB, session with rank 0 (tcp), for" in text
        assert "no collective is in flight" in text
        assert text.count("group 0") == 1
        os.kill(pids[1], signal.SIGUSR2)
        path = tmp_path / f"rdmacoll-rank1-pid{pids[1]}.json"
        wait_for(path.exists, lambda: "the signal has written nothing")
        assert "rank 1: remote read of 4 MB" in debug("show", str(tmp_path)).stdout


def test_who_opens_what_nobody_exposes_is_shown() -> None:
    with job(NAMELESS, 2) as pids:
        dump_until(pids, "rank 1: remote open, with rank 0, for")


def test_ranks_stuck_with_the_gil_answer_and_write_on_a_signal(tmp_path: Path) -> None:
    with job(STUCK, 2, RDMACOLL_DUMP_DIR=str(tmp_path)) as pids:
        dump_until(pids, "no collective is in flight; the last was #1")
        for rank, pid in enumerate(pids):
            os.kill(pid, signal.SIGUSR2)
            path = tmp_path / f"rdmacoll-rank{rank}-pid{pid}.json"
            wait_for(path.exists, lambda: "the signal has written nothing")
        shown = debug("show", str(tmp_path))
        assert shown.stdout.count("asked for by SIGUSR2") == 2


def run(script: str, size: int, *arguments: str, **variables: str) -> None:
    """To its end, which must be a good one."""
    store = host_store()
    for rank in start_ranks(store, script, size, *arguments, **variables):
        said, _ = rank.communicate(timeout=LIMIT_S)
        assert rank.returncode == 0, said


def test_a_program_s_own_handler_is_left_alone(tmp_path: Path) -> None:
    run(OWN_HANDLER, 1, RDMACOLL_DUMP_DIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_written(tmp_path: Path) -> None:
    run(FAILS, 2, RDMACOLL_DUMP_DIR=str(tmp_path), RDMACOLL_LOG="error")
    [path] = tmp_path.glob("rdmacoll-rank0-*")
    assert path.name.endswith("-error1.json")
    shown = debug("show", str(tmp_path)).stdout
    assert "rank 0 failed: Timed out after" in shown
    assert "in barrier #2" in shown


def test_a_job_is_found_by_the_process_above_it(tmp_path: Path) -> None:
    with job(STUCK, 2) as pids:
        dump_until(pids, "the last was #1")
        said = debug("dump", f"--job={os.getpid()}").stdout
        assert all(f" {pid} " in said for pid in pids), said
    assert debug("dump", f"--pid={pids[0]}").returncode == 1


def test_the_timeline_of_a_run(tmp_path: Path) -> None:
    run(START, 2, RDMACOLL_TIMELINE=str(tmp_path / "trace.json"))
    for rank in range(2):
        trace = json.loads((tmp_path / f"trace-{rank}.json").read_text())
        running = [event for event in trace if event.get("cat") == "running"]
        assert [event["name"] for event in running] == ["all_reduce #1"]


def test_the_timeline_of_one_that_is_killed(tmp_path: Path) -> None:
    """It is written while the rank runs: more than the recorder holds, and without a farewell."""
    variables = {"RDMACOLL_TIMELINE": str(tmp_path / "r{rank}"), "RDMACOLL_FLIGHT_RECORDS": "64"}
    store = host_store()
    process = start_ranks(store, UNTIL_KILLED, 1, **variables)[0]
    finish(process)
    assert process.returncode == -signal.SIGKILL
    events = json.loads((tmp_path / "r0").read_text() + "]")
    running = [event["name"] for event in events if event.get("cat") == "running"]
    assert running == [f"all_reduce #{i + 1}" for i in range(CALLED)]


def test_a_forked_child_has_none_until_it_joins_a_group() -> None:
    run(FORKS, 1)
