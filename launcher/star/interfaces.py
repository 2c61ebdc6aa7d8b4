"""The addresses of this host at which agent 0 may be reached: those that the ranks take for tcp.

The choice is csrc/transport/tcp/network/interfaces.cc's, once more in Python: an agent loads no
engine, which would load torch. Floor: launcher/star. Thread: any.
"""

import ctypes
import ipaddress
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAME = "RDMACOLL_SOCKET_IFNAME"
MOST_INTERFACES = 16  # as many as a rank takes
# Made by container engines and hypervisors on this host, for what runs on it.
FOR_THIS_HOST_ONLY = ("docker", "br-", "virbr", "veth", "cni", "podman")
_IFF_UP = 1
# In a sockaddr: where the address begins, and how many bytes it has.
_ADDRESS_AT: dict[int, tuple[int, int]] = {socket.AF_INET: (4, 4), socket.AF_INET6: (8, 16)}
_libc = ctypes.CDLL(None, use_errno=True)


class InterfaceError(OSError):
    """No interface is chosen; the message names the variable and what there is."""


@dataclass(frozen=True)
class Interface:
    name: str
    address: str
    mbit_per_s: int = 0  # 0: it does not say

    @property
    def is_link_local(self) -> bool:
        """Another host cannot dial it without knowing its own interface."""
        return ipaddress.ip_address(self.address).is_link_local

    @property
    def is_for_this_host_only(self) -> bool:
        is_loopback = ipaddress.ip_address(self.address).is_loopback
        return is_loopback or self.name.startswith(FOR_THIS_HOST_ONLY)


def choose_interfaces(found: Sequence[Interface], names: str) -> list[Interface]:
    """The fastest first. names: in NCCL's syntax; empty where the user has named none."""
    usable = [one for one in found if not one.is_link_local]
    if names:
        chosen = [one for one in usable if _takes(names, one.name)]
        if not chosen:
            there = ", ".join(f"{one.name} ({one.address})" for one in usable) or "none"
            raise InterfaceError(
                f"{NAME}={names!r} takes none of the interfaces of this host: {there}"
            )
    else:
        chosen = [one for one in usable if not one.is_for_this_host_only] or usable
        if not chosen:
            raise InterfaceError("this host has no network interface that is up")
    return sorted(chosen, key=lambda one: -one.mbit_per_s)[:MOST_INTERFACES]


def _takes(names: str, interface: str) -> bool:
    excludes = names.startswith("^")
    listed = names.removeprefix("^")
    is_exact = listed.startswith("=")
    words = [word for word in listed.removeprefix("=").split(",") if word]
    is_named = interface in words if is_exact else interface.startswith(tuple(words))
    return is_named != excludes


class _IfAddrs(ctypes.Structure):
    """As getifaddrs(3) has it; what follows is not read."""


_IfAddrs._fields_ = [
    ("next", ctypes.POINTER(_IfAddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
]


def system_interfaces() -> list[Interface]:
    """Those that are up, also loopback: one for each address."""
    first = ctypes.POINTER(_IfAddrs)()
    if _libc.getifaddrs(ctypes.byref(first)) != 0:
        number = ctypes.get_errno()
        raise InterfaceError(number, f"listing network interfaces: {os.strerror(number)}")
    found, at = [], first
    while at:
        one = at.contents
        address = _address(one.address) if one.flags & _IFF_UP and one.address else ""
        if address:
            name = os.fsdecode(one.name)
            found.append(Interface(name, address, _speed(name)))
        at = one.next
    _libc.freeifaddrs(first)
    return found


def _address(sockaddr: int) -> str:
    """Empty if it is not one of IP."""
    family = ctypes.c_ushort.from_address(sockaddr).value
    if family not in _ADDRESS_AT:
        return ""
    offset, length = _ADDRESS_AT[family]
    return socket.inet_ntop(family, ctypes.string_at(sockaddr + offset, length))


def _speed(name: str) -> int:
    with suppress(OSError, ValueError):  # many have none
        return max(0, int(Path("/sys/class/net", name, "speed").read_text()))
    return 0
