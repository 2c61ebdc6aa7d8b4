"""Waits until somebody listens where a job's Store is to be. torch's own attempts cannot be
interrupted, and say much.

Floor: rdmacoll/servers. Thread: any.
"""

import socket
import sys
import time

from .options import Address

LOOK_S = 0.2  # between attempts
DIAL_S = 2.0  # of an attempt


class NoStore(Exception):
    """The message says where, and what to do."""


def wait_for_store(store: Address, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    is_said = False
    while True:
        try:
            socket.create_connection((store.host, store.port), DIAL_S).close()
            return
        except OSError as error:
            if time.monotonic() >= deadline:
                raise NoStore(
                    f"no Store has answered at {store} in {timeout_s:g} s ({error}): start the "
                    "ranks, see that this is their MASTER_ADDR and MASTER_PORT, or wait longer"
                ) from None
            if not is_said:
                print(f"rdmacoll: waiting for the Store at {store}", file=sys.stderr)
            is_said = True
            time.sleep(LOOK_S)
