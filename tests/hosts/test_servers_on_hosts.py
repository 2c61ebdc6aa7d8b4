"""Servers of a job over several hosts: where they are, and what becomes of those of a lost host.

Floor: tests.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.jobs import GO_ON, Job, assert_nothing_left
from hosts.stand import Host, Hosts

LAUNCHER_TESTS = Path(__file__).parents[1] / "launcher"
SERVER = """
import os, signal, socket
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
own = [os.environ["RDMACOLL_SERVER" + name] for name in ("", "_START")]
print("server", *own, "on", socket.gethostname(), flush=True)
signal.sigwait({signal.SIGTERM})
print("told to end", own[0], flush=True)
"""


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    """Of each test, as it may lose one."""
    with Hosts(3) as hosts:
        yield hosts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(LAUNCHER_TESTS / "client.py", tmp_path)
    shutil.copy(LAUNCHER_TESTS / "server_stand_in.py", tmp_path / "sitecustomize.py")
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def job(host: Host, folder: Path, *options: str) -> Job:
    """Its ranks end once the folder has a file `enough`."""
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return Job(host, folder, GO_ON, *options, env={"PYTHONPATH": path})


def test_hosts_have_servers_in_turn(hosts: list[Host], folder: Path) -> None:
    a, b, _ = hosts
    started = job(a, folder, "-np", "2", "-H", "nodeA:1,nodeB:1", "--servers", "2")
    started.wait_for("server 0 0 on nodeA")
    started.wait_for("server 1 0 on nodeB")
    (folder / "enough").touch()
    assert started.end() == 0, started.said
    assert started.said.count("told to end") == 2
    assert_nothing_left(a, b)


def test_a_lost_host_takes_its_servers_and_brings_them_back(
    hosts: list[Host], folder: Path
) -> None:
    a, b, c = hosts
    options = ["-np", "3", "-H", "nodeA:1,nodeB:1,nodeC:1", "--min-np", "2"]
    options += ["--elastic", "--max-restarts", "2"]
    started = job(a, folder, *options, "--servers", "2", "--servers-on", "nodeA,nodeB")
    started.wait_for("server 0 0 on nodeA")
    started.wait_for("server 1 0 on nodeB")
    started.wait_for("of start 0 starts", 3)
    for number in (1, 2):
        b.kill()
        started.wait_for(f"starting rank 1 again when nodeB is back (restart {number} of 2)")
        b.boot()
        started.wait_for(f"server 1 {number} on nodeB")
        started.wait_for(f"up 1 of start {number} joins")
    (folder / "enough").touch()
    assert started.end() == 0, started.said
    assert started.said.count("told to end") == 2
    assert started.said.count("server 0 ") == 1
    assert_nothing_left(a, b, c)
