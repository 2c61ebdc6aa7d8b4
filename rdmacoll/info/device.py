"""RDMA devices, their ports and addresses, as values."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True)
class Gid:
    index: int
    address: str
    type: str  # "RoCE v2", "RoCE v1", "IB"
    ipv4: str | None
    netdev: str | None

    @staticmethod
    def of(index: int, address: str, gid_type: str, netdev: str | None) -> "Gid | None":
        """None where the entry of the table is empty."""
        parsed = ipaddress.IPv6Address(address)
        if not int(parsed):
            return None
        if parsed.ipv4_mapped is None:
            return Gid(index, str(parsed), gid_type, None, netdev)
        ipv4 = str(parsed.ipv4_mapped)
        return Gid(index, f"::ffff:{ipv4}", gid_type, ipv4, netdev)


@dataclass(frozen=True)
class Port:
    number: int
    state: str  # "ACTIVE", "DOWN", ...
    link_layer: str  # "Ethernet", "InfiniBand"
    rate: str
    mtu_bytes: int | None  # that in use; None: only libibverbs knows
    max_mtu_bytes: int | None
    gids: tuple[Gid, ...]


@dataclass(frozen=True)
class Device:
    name: str
    driver: str
    firmware: str
    node_guid: str
    numa_node: int | None
    ports: tuple[Port, ...]
    problem: str = ""  # why libibverbs cannot use it
