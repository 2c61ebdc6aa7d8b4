"""The report laid out for people, line by line.

Floor: tests.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fake_sysfs import add_mlx5, add_rxe

from rdmacoll.info import advice
from rdmacoll.info.listing import list_devices
from rdmacoll.info.peers import PeerPath, RankPaths, ranges
from rdmacoll.info.peers import lines as peer_lines
from rdmacoll.info.text import lines


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(advice, "LIBRARY", "libc.so.6")
    monkeypatch.setitem(sys.modules, "pyverbs.device", None)
    add_mlx5(tmp_path / "sys")
    add_rxe(tmp_path / "sys")
    (tmp_path / "infiniband").mkdir()
    (tmp_path / "infiniband/uverbs0").touch()
    return {
        "kernel": "6.1.0",
        "cores": 2,
        "memlock": {"text": "8192 KiB", "remedy": "too small:\n  a line"},
        "huge_pages": "none: why not",
        "rdma": {**asdict(list_devices(tmp_path / "sys", tmp_path)), "source": "sysfs"},
    }


def choice(local_rank: int, device: str = "", error: str = "") -> dict[str, Any]:
    return {"local_rank": local_rank, "device": device, "error": error}


def test_devices(report: dict[str, Any]) -> None:
    assert list(lines(report)) == [
        "kernel         6.1.0",
        "cores          2",
        "locked memory  8192 KiB: too small:",
        "                 a line",
        "huge pages     none: why not",
        "",
        "RDMA devices (from sysfs)",
        "  mlx5_0: mlx5_core, firmware 20.35.1012, node GUID b859:9f03:00d4:1234, NUMA node 1",
        "    port 1: ACTIVE, InfiniBand, 100 Gb/sec (4X EDR)",
        "      GID 0: fe80::b859:9f03:d4:1234, IB",
        "    port 2: DOWN, Ethernet, 100 Gb/sec (4X EDR)",
        "      GID 0: fe80::b859:9f03:d4:1234, RoCE v1 on ens1",
        "  rxe0: rxe on eth0, node GUID 0200:00ff:fe00:0000",
        "    port 1: ACTIVE, Ethernet, 100 Gb/sec (4X EDR)",
        "      GID 0: fe80::200:ff:fe00:0, RoCE v2 on eth0",
        "      GID 1: ::ffff:10.0.0.1, RoCE v2 on eth0",
    ]


def test_what_only_libibverbs_knows(report: dict[str, Any]) -> None:
    rxe = report["rdma"]["devices"][1]
    rxe["ports"][0].update(mtu_bytes=1024, max_mtu_bytes=4096)
    rxe["problem"] = "it is broken"
    text = list(lines(report))
    assert "    ! it is broken" in text
    assert "    port 1: ACTIVE, Ethernet, 100 Gb/sec (4X EDR), MTU 1024 of 4096" in text


def test_build_choices_and_environment(report: dict[str, Any]) -> None:
    report |= {"python": "3.11.2", "environment": {"RDMACOLL_LOG": "info"}}
    report["build"] = {
        "error": "",
        "torch": "2.13.0",
        "facts": {"transports": "shm, verbs"},
        "choices": [choice(0, device="rxe0 port 1 (RoCE)"), choice(1, error="no more")],
    }
    text = list(lines(report))
    assert text[:3] == [
        "python         3.11.2",
        "torch          2.13.0",
        "transports     shm, verbs",
    ]
    assert text[-6:] == [
        "The device that a rank of this host uses, by its LOCAL_RANK",
        "  0: rxe0 port 1 (RoCE)",
        "  1: no more",
        "",
        "Environment",
        "  RDMACOLL_LOG=info",
    ]


def test_no_choice_is_said_once(report: dict[str, Any]) -> None:
    report |= {"python": "3.11.2", "environment": {}}
    why = [choice(0, error="no device"), choice(1, error="no device")]
    report["build"] = {"error": "", "torch": "2.13.0", "facts": {}, "choices": why}
    assert list(lines(report))[-4:] == [
        "No rank of this host can use verbs",
        "  ! no device",
        "",
        "Environment: no RDMACOLL_ variable is set",
    ]


def test_a_build_that_does_not_load(report: dict[str, Any]) -> None:
    report |= {"python": "3.11.2", "build": {"error": "build it again"}, "environment": {}}
    assert "rdmacoll       build it again" in list(lines(report))


def test_peers() -> None:
    far = "another host (node2); mlx5_0 port 1 (RoCE, GID 3 = 10.0.0.1)"
    paths = [PeerPath(1, "shm", "same host"), PeerPath(2, "verbs", far), PeerPath(3, "verbs", far)]
    ranks = [RankPaths(0, "node1", paths), RankPaths(1, "node1", [])]
    assert list(peer_lines(ranks)) == [
        "rank 0 on node1",
        "  -> 1  shm: same host",
        f"  -> 2-3  verbs: {far}",
        "rank 1 on node1: alone",
    ]


def test_ranges() -> None:
    assert ranges([5, 0, 1, 2]) == "0-2, 5"
    assert ranges([7]) == "7"
