"""Reaches a process of this host that listens on an abstract unix socket.

Floor: rdmacoll/base. Thread: any.
"""

import socket
import time

RETRY_S = 0.02


def reach(sock: socket.socket, address: str, timeout_s: float) -> None:
    """Connects, and from then on the socket has this timeout for each call. OSError if it cannot.

    connect() waits for no room in a full queue, whatever the timeout is, so this tries again.
    """
    sock.settimeout(timeout_s)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            sock.connect(address)
            return
        except BlockingIOError:  # the queue is full
            if time.monotonic() >= deadline:
                raise
            time.sleep(RETRY_S)
