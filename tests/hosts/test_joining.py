"""Ranks of several hosts that join, over which path, and those that must not.

Floor: tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hosts.ranks import JOIN, Start
from hosts.stand import Host

TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
PORT = 29_400
LIMIT_S = 120.0

SUM = (
    "try:\n    dist.init_process_group('rdma')\n    value = torch.ones(1)\n"
    "    dist.all_reduce(value)\nexcept RuntimeError as error:\n    say_error(error)\n"
    "say('sum', value.item())\ndist.destroy_process_group()\n"
)
PATHS = (
    JOIN
    + """
backend = dist.group.WORLD._get_backend(torch.device("cpu"))
say("paths", *(f"{peer}:{transport}" for peer, transport, _ in backend._paths()))
dist.destroy_process_group()
"""
)


@pytest.mark.parametrize(
    ("transport", "expected"),
    [("auto", ["1:shm 2:tcp", "0:shm 2:tcp", "0:tcp 1:tcp"]), ("tcp", ["1:tcp 2:tcp"] * 1)],
)
def test_paths(start: Start, transport: str, expected: list[str]) -> None:
    """Mixed: shared memory inside a host, tcp between them; or tcp everywhere."""
    ranks = start("2+1", PATHS, env={"RDMACOLL_TRANSPORT": transport})
    said = [" ".join(rank.wait_for("paths")[1:]) for rank in ranks]
    assert said[: len(expected)] == expected
    assert [rank.status() for rank in ranks] == [0, 0, 0]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"RDMACOLL_REQUIRE": "verbs"}, "RDMACOLL_REQUIRE=verbs"),
        ({"RDMACOLL_TRANSPORT": "shm"}, "RDMACOLL_TRANSPORT"),
        ({"RDMACOLL_SOCKET_IFNAME": "=eth7"}, "RDMACOLL_SOCKET_IFNAME"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_what_no_path_can_meet_is_an_error_on_all(
    start: Start, setting: dict[str, str], says: str
) -> None:
    for rank in start("2x1", SUM, env=setting):
        assert says in " ".join(rank.wait_for("raised"))


def test_one_secret_joins_and_another_does_not(start: Start, tmp_path: Path) -> None:
    files = []
    for name, content in (("a", "s" * 32), ("b", "s" * 32), ("c", "t" * 32)):
        path = tmp_path / name
        path.write_text(content)
        path.chmod(0o600)
        files.append({"RDMACOLL_SECRET_FILE": str(path)})
    for rank in start("2x1", SUM, env_of_host={0: files[0], 1: files[1]}):
        assert rank.wait_for("sum") == ["sum", "2.0"]
        assert rank.status() == 0
    for rank in start("2x1", SUM, env_of_host={0: files[0], 1: files[2]}):
        said = " ".join(rank.wait_for("raised"))
        assert "secret" in said and "RDMACOLL_SECRET_FILE" in said


def test_torchrun(two_hosts: list[Host], tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "import torch\nimport torch.distributed as dist\ndist.init_process_group('rdma')\n"
        "value = torch.ones(1)\ndist.all_reduce(value)\nprint(f'sum {value.item()}', flush=True)\n"
        "dist.destroy_process_group()\n"
    )
    options = ["--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint=nodeA:{PORT}"]
    command = [*TORCHRUN, *options, "--rdzv-backend=c10d", str(path)]
    agents = [
        host.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for host in two_hosts
    ]
    for agent in agents:
        said, _ = agent.communicate(timeout=LIMIT_S)
        assert agent.returncode == 0, said
        assert said.count("sum 4.0") == 2, said


@pytest.mark.parametrize("spread", [("nodeA:1", "nodeB:1"), ("nodeA:2", "nodeB:2")])
def test_the_readmes_hello_under_rdmarun(
    two_hosts: list[Host], tmp_path: Path, spread: tuple[str, str]
) -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    hello = tmp_path / "hello.py"
    hello.write_text(readme.split("```python\n")[1].split("```")[0])
    world = sum(int(host.partition(":")[2]) for host in spread)
    command = [sys.executable, "-m", "rdmacoll.launcher", "-np", str(world), "-H", ",".join(spread)]
    done = two_hosts[0].run(*command, str(hello))
    assert done.returncode == 0, done.stdout
    total = float(sum(range(1, world + 1)))
    for rank in range(world):
        assert f"rank {rank} of {world}: {[total] * 4}" in done.stdout
