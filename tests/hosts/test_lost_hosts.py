"""Jobs over several hosts that lose one: it is named, all ends or goes on, nothing is left behind.

Floor: tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hosts.jobs import GO_ON, Job, assert_nothing_left
from hosts.stand import Host, Hosts

STAY = """
import os, signal, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", os.environ["RANK"], flush=True)
time.sleep(600)
"""


ENDED = "its agent's connection ended"
SILENT = "its agent has said nothing for 5 s, so it is down or cut off"


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    """Of each test, as it loses one."""
    with Hosts(3) as hosts:
        yield hosts


def test_a_host_that_is_killed_is_named_and_ends_the_job(hosts: list[Host], tmp_path: Path) -> None:
    a, b, _ = hosts
    job = Job(a, tmp_path, STAY, "-np", "4", "-H", "nodeA:2,nodeB:2")
    job.wait_for("up", 4)
    b.kill()
    assert job.end() == 1
    assert f"rdmarun: host nodeB (ranks 2-3) is lost: {ENDED}" in job.said
    assert "rdmarun: the job cannot go on without host nodeB" in job.said
    assert_nothing_left(a)


FAILS = """
import os, signal, sys, time
from pathlib import Path
rank, folder = os.environ["RANK"], Path(__file__).parent
deadline = time.monotonic() + 60
if rank == "0":
    signal.signal(signal.SIGTERM, lambda *_: print("told to end", flush=True))
elif rank == "2":
    while not all((folder / f"ready{other}").exists() for other in (0, 3)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    sys.exit(7)
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
(folder / f"ready{rank}").touch()
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_host_that_is_lost_with_the_rank_that_failed(
    hosts: list[Host], tmp_path: Path, restarts: int
) -> None:
    """Nobody hears the last words of the rank any more, and no restart would help."""
    a, b, _ = hosts
    job = Job(a, tmp_path, FAILS, f"--max-restarts={restarts}", "-np", "4", "-H", "nodeA:2,nodeB:2")
    job.wait_for("told to end")
    b.kill()
    assert job.end() == 1
    assert f"rdmarun: host nodeB (ranks 2-3) is lost: {ENDED}" in job.said
    assert "rdmarun: the job cannot go on without host nodeB" in job.said
    assert "Traceback" not in job.said
    assert "host nodeA" not in job.said
    assert_nothing_left(a)


def test_a_host_that_is_cut_off_is_named_and_ends_by_itself(
    hosts: list[Host], tmp_path: Path
) -> None:
    a, b, c = hosts
    job = Job(a, tmp_path, STAY, "-np", "3", "-H", "nodeA:1,nodeB:1,nodeC:1")
    job.wait_for("up", 3)
    b.cut()
    assert job.end() == 1
    assert f"rdmarun: host nodeB (rank 1) is lost: {SILENT}" in job.said
    assert_nothing_left(a, b, c)


@pytest.mark.parametrize("lose", [Host.kill, Host.cut])
def test_the_host_of_agent_0(
    hosts: list[Host], tmp_path: Path, lose: Callable[[Host], None]
) -> None:
    """rdmarun is on another."""
    a, b, c = hosts
    job = Job(a, tmp_path, STAY, "-np", "2", "-H", "nodeB:1,nodeC:1")
    job.wait_for("up", 2)
    lose(b)
    assert job.end() == 1
    why = ENDED if lose is Host.kill else SILENT
    assert f"rdmarun: host nodeB (rank 0) is lost: {why}" in job.said
    assert_nothing_left(a, c)
    if lose is Host.cut:
        assert_nothing_left(b)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parents[1] / "launcher/client.py", tmp_path)
    return tmp_path


@pytest.mark.parametrize("lose", [Host.kill, Host.cut])
def test_with_min_np_the_others_go_on(
    hosts: list[Host], folder: Path, lose: Callable[[Host], None]
) -> None:
    a, b, c = hosts
    options = ["-np", "4", "-H", "nodeA:1,nodeB:2,nodeC:1", "--min-np", "2"]
    job = Job(a, folder, GO_ON, *options)
    job.wait_for("up", 4)
    lose(b)
    job.wait_for("2 of 4 ranks are left and go on (--min-np)")
    (folder / "enough").touch()
    assert job.end() == 0, job.said
    assert "rdmarun: host nodeB (ranks 1-2) is lost: " in job.said
    assert job.said.count("went on") == 2
    assert_nothing_left(a, c)


@pytest.mark.parametrize(
    ("lose", "mend"), [(Host.kill, Host.boot), (Host.cut, Host.heal)], ids=["killed", "cut"]
)
def test_with_elastic_the_host_comes_back(
    hosts: list[Host],
    folder: Path,
    lose: Callable[[Host], None],
    mend: Callable[[Host], None],
) -> None:
    a, b, c = hosts
    options = ["-np", "4", "-H", "nodeA:1,nodeB:2,nodeC:1", "--min-np", "2"]
    job = Job(a, folder, GO_ON, *options, "--elastic", "--max-restarts", "1")
    job.wait_for("of start 0 starts", 4)
    lose(b)
    job.wait_for("starting ranks 1-2 again when nodeB is back (restart 1 of 1)")
    mend(b)
    job.wait_for("of start 1 joins", 2)
    (folder / "enough").touch()
    assert job.end() == 0, job.said
    assert job.said.count("went on") == 4
    assert_nothing_left(a, b, c)


def test_a_host_comes_back_twice(hosts: list[Host], folder: Path) -> None:
    a, b, c = hosts
    options = ["-np", "3", "-H", "nodeA:1,nodeB:1,nodeC:1", "--min-np", "2"]
    job = Job(a, folder, GO_ON, *options, "--elastic", "--max-restarts", "2")
    job.wait_for("of start 0 starts", 3)
    for number in (1, 2):
        b.kill()
        job.wait_for(f"starting rank 1 again when nodeB is back (restart {number} of 2)")
        b.boot()
        job.wait_for(f"up 1 of start {number} joins")
    b.kill()
    job.wait_for("is lost", 3)
    (folder / "enough").touch()
    assert job.end() == 0, job.said
    assert job.said.count("starting rank 1 again") == 2
    assert_nothing_left(a, c)


def test_a_job_ends_while_a_host_is_away(hosts: list[Host], folder: Path) -> None:
    a, b, c = hosts
    options = ["-np", "3", "-H", "nodeA:1,nodeB:1,nodeC:1", "--min-np", "2"]
    job = Job(a, folder, GO_ON, *options, "--elastic", "--max-restarts", "5")
    job.wait_for("of start 0 starts", 3)
    b.kill()
    job.wait_for("starting rank 1 again when nodeB is back")
    (folder / "enough").touch()
    assert job.end() == 0, job.said
    assert_nothing_left(a, c)
