"""The listing of RDMA devices: from a made-up /sys, with a made-up pyverbs and without one.

Floor: tests.
"""

import sys
from pathlib import Path

import pytest
from fake_pyverbs import FakePyverbs
from fake_sysfs import add_mlx5, add_rxe

from rdmacoll.info import advice
from rdmacoll.info.device import Gid
from rdmacoll.info.listing import Listing, list_devices
from rdmacoll.info.with_pyverbs import NOT_LISTED


@pytest.fixture(autouse=True)
def with_libibverbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "LIBRARY", "libc.so.6")


@pytest.fixture
def without_pyverbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyverbs", None)
    monkeypatch.setitem(sys.modules, "pyverbs.device", None)


def with_pyverbs(monkeypatch: pytest.MonkeyPatch, verbs: FakePyverbs) -> None:
    monkeypatch.setitem(sys.modules, "pyverbs.device", verbs)


def listing(tmp_path: Path, nodes: tuple[str, ...] = ("uverbs0",)) -> Listing:
    """Of the host in tmp_path/sys, with these files in /dev/infiniband."""
    folder = tmp_path / "dev/infiniband"
    folder.mkdir(parents=True)
    for node in nodes:
        (folder / node).touch()
    return list_devices(tmp_path / "sys", tmp_path / "dev")


@pytest.mark.usefixtures("without_pyverbs")
def test_software_device_from_sysfs(tmp_path: Path) -> None:
    add_rxe(tmp_path / "sys")
    found = listing(tmp_path)
    assert found.source.startswith("sysfs; pyverbs is not used: ")
    assert found.advice == []
    (device,) = found.devices
    assert (device.name, device.driver, device.firmware) == ("rxe0", "rxe on eth0", "")
    assert (device.node_guid, device.numa_node) == ("0200:00ff:fe00:0000", None)
    (port,) = device.ports
    assert (port.number, port.state, port.link_layer) == (1, "ACTIVE", "Ethernet")
    assert (port.rate, port.mtu_bytes) == ("100 Gb/sec (4X EDR)", None)
    assert port.gids == (
        Gid(0, "fe80::200:ff:fe00:0", "RoCE v2", None, "eth0"),
        Gid(1, "::ffff:10.0.0.1", "RoCE v2", "10.0.0.1", "eth0"),
    )


@pytest.mark.usefixtures("without_pyverbs")
def test_card_with_two_ports_from_sysfs(tmp_path: Path) -> None:
    add_mlx5(tmp_path / "sys")
    (device,) = listing(tmp_path).devices
    assert (device.driver, device.firmware, device.numa_node) == ("mlx5_core", "20.35.1012", 1)
    infiniband, ethernet = device.ports
    assert (infiniband.link_layer, infiniband.state) == ("InfiniBand", "ACTIVE")
    assert (ethernet.link_layer, ethernet.state) == ("Ethernet", "DOWN")
    assert (infiniband.gids[0].type, infiniband.gids[0].netdev) == ("IB", None)
    assert (ethernet.gids[0].type, ethernet.gids[0].netdev) == ("RoCE v1", "ens1")


@pytest.mark.usefixtures("without_pyverbs")
def test_no_device(tmp_path: Path) -> None:
    found = listing(tmp_path, nodes=())
    assert found.devices == []
    (note,) = found.advice
    for part in ("no RDMA device", "rdma-core", "ibverbs-providers", "--device=/dev/infiniband"):
        assert part in note


@pytest.mark.usefixtures("without_pyverbs")
def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "LIBRARY", "libnosuch.so.1")
    add_rxe(tmp_path / "sys", state="1: DOWN")
    library, nodes, port = listing(tmp_path, nodes=()).advice
    assert "apt-get install rdma-core ibverbs-providers" in library
    assert f"no files in {tmp_path}/dev/infiniband" in nodes
    assert "--device=/dev/infiniband" in nodes
    assert "No port is ACTIVE" in port


@pytest.mark.usefixtures("without_pyverbs")
def test_a_device_that_is_closed_to_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may open everything
    add_rxe(tmp_path / "sys")
    (note,) = listing(tmp_path).advice
    assert f"{tmp_path}/dev/infiniband/uverbs0: this user may not open it" in note


def test_libibverbs_is_asked_through_pyverbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_pyverbs(monkeypatch, FakePyverbs("rxe0"))
    add_rxe(tmp_path / "sys")
    found = listing(tmp_path)
    assert found.source == "pyverbs"
    (device,) = found.devices
    assert (device.driver, device.firmware, device.problem) == ("rxe on eth0", "1.2.3", "")
    (port,) = device.ports
    assert (port.state, port.mtu_bytes, port.max_mtu_bytes) == ("DOWN", 1024, 4096)
    assert [(gid.type, gid.ipv4) for gid in port.gids] == [
        ("RoCE v1", None),
        ("RoCE v2", "10.0.0.2"),
    ]


def test_what_libibverbs_cannot_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pyverbs(monkeypatch, FakePyverbs("rxe0", closed=("rxe0",)))
    add_mlx5(tmp_path / "sys")
    add_rxe(tmp_path / "sys")
    mlx5, rxe = listing(tmp_path).devices
    assert mlx5.problem == NOT_LISTED
    assert mlx5.firmware == "20.35.1012"  # what the kernel says is shown all the same
    assert rxe.problem == "libibverbs cannot open it: Failed to open device rxe0"
    assert rxe.ports[0].gids[1].ipv4 == "10.0.0.1"


def test_pyverbs_without_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pyverbs(monkeypatch, FakePyverbs())
    assert listing(tmp_path).devices == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise ImportError('libefa.so.1: cannot open')", "libefa.so.1: cannot open"),
        ("raise ValueError('size changed')", "pyverbs does not load: ValueError('size changed')"),
    ],
)
def test_pyverbs_that_does_not_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, says: str
) -> None:
    (tmp_path / "pyverbs").mkdir()
    (tmp_path / "pyverbs/__init__.py").touch()
    (tmp_path / "pyverbs/device.py").write_text(source)
    for name in ("pyverbs", "pyverbs.device"):
        monkeypatch.setitem(sys.modules, name, None)  # so that what was here comes back
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(tmp_path))
    add_rxe(tmp_path / "sys")
    found = listing(tmp_path)
    assert found.source == f"sysfs; pyverbs is not used: {says}"
    assert [device.name for device in found.devices] == ["rxe0"]
