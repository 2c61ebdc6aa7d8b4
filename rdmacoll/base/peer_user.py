"""Whose process or file it is, by the user id that the kernel shows. csrc/base/same_user.h is the
same for C++.

In a user namespace the kernel shows every user that the namespace does not map by one id, the
overflow id. A process that runs with that id there cannot tell itself from all of them, so that id
is nobody's, unless the namespace maps every user to itself. No torch: the launcher imports it too.
"""

import os
import socket
import struct
from pathlib import Path

_PEERCRED = struct.Struct("iII")  # pid, uid, gid
_IDENTITY = ["0", "0", "4294967295"]


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """Process id and user id of the other end of a unix socket, as this process sees them."""
    pid, uid, _ = _PEERCRED.unpack(
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
    )
    return pid, uid


def same_user(uid: int) -> bool:
    """Whether it is this process's own, beyond doubt."""
    return uid == os.geteuid() and not is_ambiguous(uid)


def same_user_or_root(uid: int) -> bool:
    return same_user(uid) or (uid == 0 and not is_ambiguous(uid))


def is_ambiguous(uid: int) -> bool:
    """Whether this id may stand for many users here. Without /proc the answer is as in a namespace
    that maps nobody."""
    overflow = _words("/proc/sys/kernel/overflowuid") or ["65534"]
    return str(uid) == overflow[0] and _words("/proc/self/uid_map") != _IDENTITY


def _words(path: str) -> list[str]:
    try:
        return Path(path).read_text().split()
    except OSError:
        return []
