"""The key holder: a process on each host that gives the agent there the job's key.

rdmarun starts it by ssh and writes the key to its input, so that the key is on no command line, in
no environment and in no file. The key holder ends when its input does.
Floor: launcher/keys, a process of its own. Thread: the main one.
"""

import os
import select
import socket
import sys

from rdmacoll.base.peer_user import peer_of, same_user
from rdmacoll.base.reach import reach

READY = b"rdmarun: the key is held\n"
KEY_BYTES_MAX = 4096
ASK_TIMEOUT_S = 10.0


def key_address(run_id: str, agent: int) -> str:
    return f"\0rdmacoll-key-{run_id}-{agent}"


def main() -> None:
    """`key_holder RUN_ID AGENT`. The first line of its input is the key, in hexadecimal."""
    run_id, agent = sys.argv[1], int(sys.argv[2])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(key_address(run_id, agent))
        listener.listen()
        listener.setblocking(False)
        key = bytes.fromhex(sys.stdin.buffer.readline(2 * KEY_BYTES_MAX + 1).decode())
        os.write(1, READY)
        while True:
            readable, _, _ = select.select([0, listener.fileno()], [], [])
            if 0 in readable:  # the end: rdmarun needs no key holder any more, or is gone
                return
            _serve(listener, key)


def _serve(listener: socket.socket, key: bytes) -> None:
    try:
        caller, _ = listener.accept()
    except OSError:  # the caller has hung up already
        return
    with caller:
        if same_user(peer_of(caller)[1]):
            caller.setblocking(False)
            caller.send(key)  # all of it: the buffer is empty


def ask_for_key(run_id: str, agent: int) -> bytes:
    """The agent's side: the key. OSError if no key holder of this user gives it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        reach(holder, key_address(run_id, agent), ASK_TIMEOUT_S)
        _, user = peer_of(holder)
        if not same_user(user):
            raise PermissionError(f"the key is held by user {user}, not by this one")
        with holder.makefile("rb") as stream:
            key = stream.read(KEY_BYTES_MAX)
    if not key:
        raise ConnectionError("the key holder hung up")
    return key
