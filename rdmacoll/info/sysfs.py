"""The kernel's RDMA devices, from /sys/class/infiniband: needs no library and no permission."""

from pathlib import Path

from .device import Device, Gid, Port

SYSFS = Path("/sys")


def kernel_devices(sysfs: Path = SYSFS) -> list[Device]:
    folder = sysfs / "class/infiniband"
    return [_device(path) for path in sorted(folder.glob("*"))]


def _device(path: Path) -> Device:
    ports = sorted((path / "ports").glob("*"), key=lambda port: int(port.name))
    return Device(
        name=path.name,
        driver=_driver(path),
        firmware=_read(path / "fw_ver"),
        node_guid=_read(path / "node_guid"),
        numa_node=_numa_node(path),
        ports=tuple(_port(port) for port in ports),
    )


def _driver(path: Path) -> str:
    """That of the PCI device, by the link to it; a software device names what it runs on."""
    link = path / "device/driver"
    if link.exists():
        return link.resolve().name
    kind, parent = _read(path / "node_desc"), _read(path / "parent")
    return f"{kind or 'software'} on {parent}" if parent else "unknown"


def _numa_node(path: Path) -> int | None:
    node = _read(path / "device/numa_node")
    return int(node) if node and node != "-1" else None


def _port(path: Path) -> Port:
    link_layer = _read(path / "link_layer")
    return Port(
        number=int(path.name),
        state=_read(path / "state").rpartition(": ")[2],  # "4: ACTIVE"
        link_layer=link_layer,
        rate=_read(path / "rate"),
        mtu_bytes=None,
        max_mtu_bytes=None,
        gids=tuple(_gids(path, link_layer)),
    )


def _gids(port: Path, link_layer: str) -> list[Gid]:
    found = []
    for index in sorted(int(path.name) for path in (port / "gids").glob("*")):
        address = _read(port / f"gids/{index}")
        gid_type = _read(port / f"gid_attrs/types/{index}")
        if gid_type == "IB/RoCE v1":  # the kernel has one name for both
            gid_type = "IB" if link_layer == "InfiniBand" else "RoCE v1"
        netdev = _read(port / f"gid_attrs/ndevs/{index}") or None
        if address and (gid := Gid.of(index, address, gid_type, netdev)):
            found.append(gid)
    return found


def _read(path: Path) -> str:
    """Empty where there is no such attribute, or no value in it (the kernel says EINVAL)."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
