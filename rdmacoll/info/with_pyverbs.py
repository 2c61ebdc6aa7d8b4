"""RDMA devices as libibverbs sees and opens them, through pyverbs. What the kernel alone knows
(driver, NUMA node, rate) is taken over from sysfs.
"""

import importlib
import socket
from dataclasses import replace
from typing import Any

from .device import Device, Gid, Port

STATES = {1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
LINK_LAYERS = {1: "InfiniBand", 2: "Ethernet"}
GID_TYPES = {0: "IB", 1: "RoCE v1", 2: "RoCE v2"}

NOT_LISTED = (
    "the kernel has it, libibverbs does not list it: install its provider (ibverbs-providers), and "
    "into a container pass /dev/infiniband"
)


def load_pyverbs() -> Any:
    """pyverbs.device; ImportError says why it cannot be used."""
    try:
        return importlib.import_module("pyverbs.device")
    except ImportError:
        raise
    except Exception as error:  # a module of another Cython or rdma-core fails as it likes
        raise ImportError(f"pyverbs does not load: {error!r}") from error


def as_libibverbs_sees(verbs: Any, devices: list[Device]) -> list[Device]:
    """The kernel's devices, with what libibverbs says of each."""
    try:
        listed = {device.name.decode() for device in verbs.get_device_list()}
    except verbs.PyverbsError:  # what it says when there is none
        listed = set()
    return [
        _ask(verbs, device) if device.name in listed else replace(device, problem=NOT_LISTED)
        for device in devices
    ]


def _ask(verbs: Any, device: Device) -> Device:
    try:
        with verbs.Context(name=device.name) as context:
            firmware = context.query_device().fw_version
            asked = [context.query_port(port.number) for port in device.ports]
            entries = context.query_gid_table(sum(port.gid_tbl_len for port in asked))
    except verbs.PyverbsError as error:
        return replace(device, problem=f"libibverbs cannot open it: {error}")
    ports = [_port(old, new, entries) for old, new in zip(device.ports, asked, strict=True)]
    return replace(device, firmware=firmware, ports=tuple(ports))


def _port(port: Port, attributes: Any, entries: list[Any]) -> Port:
    gids = [_gid(entry) for entry in entries if entry.port_num == port.number]
    return replace(
        port,
        state=STATES.get(attributes.state, str(attributes.state)),
        link_layer=LINK_LAYERS.get(attributes.link_layer, port.link_layer),
        mtu_bytes=128 << attributes.active_mtu,  # an ibv_mtu: 1 is 256 bytes
        max_mtu_bytes=128 << attributes.max_mtu,
        gids=tuple(gid for gid in gids if gid is not None),
    )


def _gid(entry: Any) -> Gid | None:
    gid_type = GID_TYPES.get(entry.gid_type, str(entry.gid_type))
    return Gid.of(entry.gid_index, entry.gid_str(), gid_type, _netdev(entry.ndev_ifindex))


def _netdev(index: int) -> str | None:
    try:
        return socket.if_indextoname(index) if index else None
    except OSError:  # in another network namespace
        return None
