"""Where the hub listens: at the addresses of the interfaces that RDMACOLL_SOCKET_IFNAME allows, on
one port of RDMACOLL_TCP_PORTS.

Floor: launcher/star. Thread: any.
"""

import errno
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

from .interfaces import NAME as INTERFACES
from .interfaces import choose_interfaces, system_interfaces

NAME = "RDMACOLL_TCP_PORTS"
# Without a range the system chooses a port for one address, and another process may have it at the
# next. Then it chooses again.
CHOICES = 100


class PortError(OSError):
    """There is no port; the message names the variable and the remedy."""


def listen(environ: Mapping[str, str], only_local: bool) -> list[socket.socket]:
    """A socket for each address, all on the same port. InterfaceError: there are no addresses."""
    if only_local:
        addresses = ["127.0.0.1"]
    else:
        chosen = choose_interfaces(system_interfaces(), environ.get(INTERFACES, ""))
        addresses = list(dict.fromkeys(one.address for one in chosen))
    said = environ.get(NAME, "")
    ports: Iterable[int] = _ports(said) if said else [0] * CHOICES
    for port in ports:
        if socks := _listen_at_all(addresses, port):
            return socks
    at = ", ".join(addresses)
    raise PortError(
        f"{NAME}={said}: none of these ports is free at {at}; agent 0 takes one, and so does each "
        "rank of its host: name a larger range"
        if said
        else f"no TCP port is free at {at}; end other programs that listen, or choose interfaces "
        f"with {INTERFACES}"
    )


def _ports(said: str) -> range:
    match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", said)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last <= 65535:
        raise PortError(f"{NAME}={said} is no port and no range; write it as 20000-20100")
    return range(first, last + 1)


def _listen_at_all(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Empty if the port is taken at one of them. The system chooses port 0."""
    with ExitStack() as opened:
        socks: list[socket.socket] = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                sock = socket.create_server(
                    (address, port), family=family, backlog=socket.SOMAXCONN
                )
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return []
                raise PortError(
                    f"agent 0 cannot listen at {address}: {error.strerror}; choose other "
                    f"interfaces with {INTERFACES}, or other ports with {NAME}"
                ) from None
            socks.append(opened.enter_context(sock))
            port = sock.getsockname()[1]
        opened.pop_all()
        return socks
