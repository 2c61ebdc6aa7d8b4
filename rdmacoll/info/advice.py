"""What keeps this machine from using RDMA, and what to do about each."""

import ctypes
import os
from pathlib import Path

from .device import Device

LIBRARY = "libibverbs.so.1"

NO_DEVICE = (
    "The kernel has no RDMA device: the card's driver is not loaded (lspci shows the card, "
    "`modprobe mlx5_ib` loads one), or there is no card. Programs also need the packages rdma-core "
    "and ibverbs-providers, and in a container `--device=/dev/infiniband --ulimit memlock=-1`. "
    "Without a card, Soft-RoCE runs on any network interface: `modprobe rdma_rxe; rdma link add "
    "rxe0 type rxe netdev eth0`."
)
NO_LIBRARY = (
    "libibverbs is not installed: `apt-get install rdma-core ibverbs-providers` "
    "(Debian, Ubuntu) or `dnf install rdma-core libibverbs` (Red Hat, SUSE)."
)
NO_NODES = (
    "The kernel's devices have no files in {folder}: in a container, start it with "
    "`--device=/dev/infiniband --ulimit memlock=-1`; on the machine itself, `modprobe ib_uverbs`."
)
NO_PERMISSION = (
    "{nodes}: this user may not open it; rdma-core's udev rules make it open to all, or "
    "`chmod a+rw {nodes}`."
)
NO_ACTIVE_PORT = (
    "No port is ACTIVE. Ethernet: `ip link set <interface> up` and give it an address; "
    "InfiniBand: a cable, and a subnet manager on the fabric (opensm)."
)


def device_advice(devices: list[Device], dev: Path) -> list[str]:
    """Empty where nothing is amiss."""
    advice = [] if devices else [NO_DEVICE]
    if not _has_libibverbs():
        advice.append(NO_LIBRARY)
    if devices:
        advice += _node_advice(dev / "infiniband")
        if not any(port.state == "ACTIVE" for device in devices for port in device.ports):
            advice.append(NO_ACTIVE_PORT)
    return advice


def _node_advice(folder: Path) -> list[str]:
    nodes = sorted(folder.glob("uverbs*"))
    if not nodes:
        return [NO_NODES.format(folder=folder)]
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    return [NO_PERMISSION.format(nodes=" ".join(closed))] if closed else []


def _has_libibverbs() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True
