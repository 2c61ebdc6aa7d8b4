"""The stand itself: hosts differ as hosts do, and nothing of them outlives the tests.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hosts import StandError
from hosts.processes import network_of, processes_in
from hosts.stand import Host, MakeHosts

LIMIT_S = 30.0
REPOSITORY = Path(__file__).resolve().parents[2]


def wait_until_empty(network: tuple[int, int]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while left := processes_in(network):
        assert time.monotonic() < deadline, f"{left} live on"
        time.sleep(0.02)


def said(host: Host, *command: str, **env: str) -> str:
    done = host.run(*command, env=env)
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


def test_each_has_a_name_a_boot_id_and_shared_memory_of_its_own(two_hosts: list[Host]) -> None:
    mine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ids = {said(host, "cat", "/proc/sys/kernel/random/boot_id") for host in two_hosts}
    assert len(ids | {mine}) == 3
    assert [said(host, "hostname") for host in two_hosts] == ["nodeA", "nodeB"]
    said(two_hosts[0], "touch", "/dev/shm/of_host_a")
    assert said(two_hosts[1], "ls", "/dev/shm") == ""


@pytest.mark.parametrize("suffix", ["", "-6"], ids=["IPv4", "IPv6"])
def test_they_reach_each_other_by_name_and_not_the_machine(
    two_hosts: list[Host], suffix: str
) -> None:
    a, b = two_hosts
    listener = (
        "import socket, sys; family = socket.AF_INET6 if sys.argv[1] else socket.AF_INET;"
        "server = socket.create_server(('', 7000), family=family); print('up', flush=True);"
        "print(server.accept()[1][0])"
    )
    server = b.start(sys.executable, "-c", listener, suffix, stdout=subprocess.PIPE)
    assert server.stdout is not None and server.stdout.readline() == "up\n"
    dial = f"import socket; socket.create_connection(('{b.name}{suffix}', 7000), 10)"
    said(a, sys.executable, "-c", dial)
    assert server.communicate(timeout=LIMIT_S)[0].strip() == (a.address6 if suffix else a.address)


def test_ssh_runs_a_command_there_in_a_fresh_environment(two_hosts: list[Host]) -> None:
    command = ("sh", "-c", '"$HYDRA_LAUNCHER_EXEC" -x -o BatchMode=yes nodeB "$@"', "sh")
    show = "hostname; echo $LC_KEPT $LOST; exit 7"
    done = two_hosts[0].run(*command, show, env={"LC_KEPT": "kept", "LOST": "lost"})
    assert (done.returncode, done.stdout) == (7, "nodeB\nkept\n")
    done = two_hosts[0].run("sh", "-c", '"$HYDRA_LAUNCHER_EXEC" nodeZ true')
    assert done.returncode == 255 and "nodeZ" in done.stdout


def test_traffic_is_counted(two_hosts: list[Host]) -> None:
    a, b = two_hosts
    sent, received = a.traffic().sent_bytes, b.traffic().received_bytes
    said(a, "ping", "-c", "1", "-s", "1000", b.name)
    assert 1000 < a.traffic().sent_bytes - sent < 3000
    assert 1000 < b.traffic().received_bytes - received < 3000


def test_a_cut_cable_can_be_healed(two_hosts: list[Host]) -> None:
    a, b = two_hosts
    ping = ("ping", "-c", "1", "-W", "1", b.name)
    assert a.run(*ping).returncode == 0
    b.cut()
    assert a.run(*ping).returncode == 1
    b.heal()
    assert a.run(*ping).returncode == 0


def test_a_killed_host_leaves_nothing_and_boots_as_another(make_hosts: MakeHosts) -> None:
    a, b = make_hosts(2)
    boot_id = said(b, "cat", "/proc/sys/kernel/random/boot_id")
    network = b.keeper.network
    process = b.start("sh", "-c", "echo up; sleep 600", stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    b.kill()
    assert process.wait(LIMIT_S) == -signal.SIGKILL
    assert processes_in(network) == []
    b.boot()
    assert said(a, "ping", "-c", "1", "-W", "5", b.name)
    assert said(b, "cat", "/proc/sys/kernel/random/boot_id") != boot_id


USE = """
import time
from hosts.stand import Hosts
with Hosts(2) as hosts:
    for host in hosts:
        host.start("sleep", "600")
    print(*(host.keeper.holder for host in hosts), flush=True)
    time.sleep(600)
"""


@pytest.mark.usefixtures("two_hosts")  # skips where there are none
def test_nothing_outlives_who_is_killed() -> None:
    user = subprocess.Popen(
        [sys.executable, "-c", USE],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    holders = user.stdout.readline().split()
    networks = [network_of(int(holder)) for holder in holders]
    user.kill()
    user.communicate(timeout=LIMIT_S)
    for network in networks:
        wait_until_empty(network)


def test_two_stands_do_not_meet(two_hosts: list[Host], make_hosts: MakeHosts) -> None:
    others = make_hosts(2)
    for host in (two_hosts[0], others[0]):
        said(host, "ping", "-c", "1", host.name)
    two_hosts[1].cut()
    said(others[0], "ping", "-c", "1", "-W", "5", others[1].name)
    two_hosts[1].heal()


def test_a_command_that_hangs_is_ended(two_hosts: list[Host]) -> None:
    with pytest.raises(StandError, match="took 1 s"):
        two_hosts[0].run("sleep", "600", timeout_s=1)
