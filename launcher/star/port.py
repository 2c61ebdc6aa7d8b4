"""The port that the hub listens on, of those that RDMACOLL_TCP_PORTS allows.

Floor: launcher/star. Thread: any.
"""

import re
import socket
from collections.abc import Mapping

NAME = "RDMACOLL_TCP_PORTS"


class PortError(OSError):
    """There is no port; the message names the variable and the remedy."""


def listen(environ: Mapping[str, str], only_local: bool) -> socket.socket:
    said = environ.get(NAME)
    for port in [0] if said is None else _ports(said):
        try:
            return _listen(port, only_local)
        except OSError as error:
            why = error
    raise PortError(
        f"{NAME}={said}: none of these ports is free ({why.strerror}); name a larger range"
        if said is not None
        else f"no TCP port can be listened on: {why.strerror}"
    )


def _ports(said: str) -> range:
    match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", said)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last <= 65535:
        raise PortError(f"{NAME}={said} is no port and no range; write it as 20000-20100")
    return range(first, last + 1)


def _listen(port: int, only_local: bool) -> socket.socket:
    if only_local:
        return socket.create_server(("127.0.0.1", port), backlog=socket.SOMAXCONN)
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port),
            family=socket.AF_INET6,
            dualstack_ipv6=True,
            backlog=socket.SOMAXCONN,
        )
    return socket.create_server(("", port), backlog=socket.SOMAXCONN)
