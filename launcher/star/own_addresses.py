"""The IPv4 addresses of this host's interfaces, for others to try where its name leads nowhere.

Floor: launcher/star. Thread: any.
"""

import fcntl
import socket
import struct

SIOCGIFADDR = 0x8915


def own_addresses() -> list[str]:
    """Those of the loopback come last."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        found = [_address(any_socket, name) for _, name in socket.if_nameindex()]
    return sorted(filter(None, found), key=lambda address: address.startswith("127."))


def _address(any_socket: socket.socket, interface: str) -> str:
    """Empty if it has none."""
    request = struct.pack("256s", interface.encode()[:15])
    try:
        return socket.inet_ntoa(fcntl.ioctl(any_socket, SIOCGIFADDR, request)[20:24])
    except OSError:
        return ""
