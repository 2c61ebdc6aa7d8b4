"""At which addresses agent 0 listens and is found, and jobs by names that have IPv6 addresses only.

Floor: tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hosts.stand import Host, MakeHosts

RDMARUN = [sys.executable, "-m", "rdmacoll.launcher", "--no-tag-output"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
PORT = 29_400
LIMIT_S = 120.0
PORTS = range(30_000, 30_004)
IN_PORTS = {"RDMACOLL_TCP_PORTS": f"{PORTS[0]}-{PORTS[-1]}"}
ETH0, ETH1 = ["10.77.0.1", "fd77::1"], ["10.78.0.1"]

# Beside agent 0, which takes agents that come back: it listens to the end of the job.
WHO_LISTENS = f"""
import os, psutil
if os.environ["RANK"] == "0":
    mine = [one.laddr for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    print("at", *sorted(f"{{a.ip}}/{{a.port}}" for a in mine if a.port in {PORTS}), flush=True)
"""
SUM = """
import torch
import torch.distributed as dist
dist.init_process_group("rdma")
value = torch.ones(1)
dist.all_reduce(value)
print("sum", value.item(), flush=True)
dist.destroy_process_group()
"""


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def with_cards(make_hosts: MakeHosts) -> list[Host]:
    """The first has another network, which the second reaches, and one of containers."""
    a, b = make_hosts(2)
    for name, address in (("eth1", f"{ETH1[0]}/24"), ("docker0", "172.17.0.1/16")):
        a.keeper.ip(
            f"link add {name} type veth peer name inner{name}",
            f"addr add {address} dev {name}",
            f"link set {name} up",
            f"link set inner{name} up",
        )
    b.keeper.ip(f"route add 10.78.0.0/24 via {a.address}")
    return [a, b]


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ([], {}, [*ETH0, *ETH1]),
        (["--network-interfaces", "=eth0"], {}, ETH0),
        (["-x", "RDMACOLL_SOCKET_IFNAME=^eth1,lo,docker"], {}, ETH0),
        ([], {"RDMACOLL_SOCKET_IFNAME": "eth1"}, ETH1),  # where the host's name does not lead
    ],
    ids=["unset", "option", "-x", "environment"],
)
def test_agent_0_listens_at_the_chosen_interfaces_alone(
    with_cards: list[Host],
    tmp_path: Path,
    options: list[str],
    environ: dict[str, str],
    expected: list[str],
) -> None:
    elastic = ["--elastic", "--min-np=1", "--max-restarts=1", "-H", "nodeA,nodeB"]
    command = [*RDMARUN, *elastic, *options, script(tmp_path, WHO_LISTENS)]
    done = with_cards[0].run(*command, env=IN_PORTS | environ)
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("at ")]
    assert line == " ".join(["at", *sorted(f"{address}/{PORTS[0]}" for address in expected)])


def test_no_interface_and_no_port_are_errors_of_agent_0(
    with_cards: list[Host], tmp_path: Path
) -> None:
    command = [*RDMARUN, "-H", "nodeA,nodeB", script(tmp_path, WHO_LISTENS)]
    done = with_cards[0].run(*command, env={"RDMACOLL_SOCKET_IFNAME": "=eth7"})
    said = "rdmarun: host nodeA: RDMACOLL_SOCKET_IFNAME='=eth7' takes none of the interfaces of"
    assert done.returncode != 0 and said in done.stdout, done.stdout
    hold = (
        "import socket, sys; held = socket.create_server((sys.argv[1], int(sys.argv[2])));"
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = with_cards[0].start(
        *(sys.executable, "-c", hold, ETH1[0], str(PORTS[0])),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        done = with_cards[0].run(*command, env={"RDMACOLL_TCP_PORTS": str(PORTS[0])})
    finally:
        holder.communicate(timeout=LIMIT_S)
    said = f"rdmarun: host nodeA: RDMACOLL_TCP_PORTS={PORTS[0]}: none of these ports is free at"
    assert done.returncode != 0 and said in done.stdout, done.stdout


def test_names_that_have_ipv6_addresses_only(two_hosts: list[Host], tmp_path: Path) -> None:
    command = [*RDMARUN, "-H", "nodeA-6:2,nodeB-6:1", script(tmp_path, SUM)]
    done = two_hosts[0].run(*command)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("sum 3.0\n") == 3, done.stdout


@pytest.fixture(scope="module")
def without_ipv4(make_hosts: MakeHosts) -> list[Host]:
    return make_hosts(2, ipv4=False)


def test_hosts_without_ipv4_are_beyond_mpiexec_which_is_said(
    without_ipv4: list[Host], tmp_path: Path
) -> None:
    """When MPICH's learns it, this fails, and the documents are to be corrected."""
    done = without_ipv4[0].run(*RDMARUN, "-H", "nodeA,nodeB", script(tmp_path, SUM))
    assert done.returncode != 0
    assert "mpiexec of MPICH goes over IPv4 alone, and nodeA has no IPv4 address" in done.stdout


def test_hosts_without_ipv4_under_torchrun(without_ipv4: list[Host], tmp_path: Path) -> None:
    options = ["--nnodes=2", "--nproc-per-node=1", f"--rdzv-endpoint=nodeA:{PORT}"]
    command = [*TORCHRUN, *options, "--rdzv-backend=c10d", script(tmp_path, SUM)]
    agents = [
        host.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for host in without_ipv4
    ]
    for agent in agents:
        said, _ = agent.communicate(timeout=LIMIT_S)
        assert agent.returncode == 0, said
        assert "sum 2.0" in said, said
