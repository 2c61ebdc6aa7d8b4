"""Runs a script as `python SCRIPT ...` does, in a process that has imported torch already.

    rdmarun -np 4 tests/rdma/warm.py SCRIPT [ARGUMENT ...]

torch takes half a minute to import on an emulated processor, for each rank of each job anew. So
`warm.py` without arguments, once on each host, imports it and is then forked for whoever asks. The
script has the descriptors and the environment of who asks, and that one ends with its status, as if
it were the script: a launcher sees no difference. (rdmarun would end a server that a rank started.)
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

ADDRESS = f"\0rdmacoll-warm-{os.getuid()}"  # a name without a file: it ends with its server
STANDARD = (0, 1, 2)
IMPORT_LIMIT_S = 180
REQUEST_BYTES = 1 << 16


# --- who asks -------------------------------------------------------------------------------------


def connect() -> socket.socket:
    """To the server of this host, which may not have imported everything yet."""
    deadline = time.monotonic() + IMPORT_LIMIT_S
    while True:
        asks = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            asks.connect(ADDRESS)
            return asks
        except ConnectionRefusedError:
            asks.close()
        if time.monotonic() > deadline:
            raise SystemExit(f"nobody listens at {ADDRESS!r}: start {__file__} without arguments")
        time.sleep(0.1)


def ask(arguments: list[str]) -> int:
    """The script's status; negative: the signal that ended it."""
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    with connect() as asks:
        socket.send_fds(asks, [json.dumps(request).encode()], STANDARD)
        said = asks.recv(REQUEST_BYTES)
    return int(said) if said else 1


# --- the server -----------------------------------------------------------------------------------


def serve() -> tuple[dict[str, Any], list[int]]:
    """Returns in a fork of the server only: what it shall run, and its descriptors."""
    import torch.distributed  # noqa: F401  for all that are forked

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that keep a script
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(ADDRESS)
    listener.listen()
    while True:
        asked, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return keep(asked)
        asked.close()


def keep(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Returns in the script's process only. Its parent stays until it has ended, or until who asked
    for it has."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, descriptors, *_ = socket.recv_fds(asked, REQUEST_BYTES, len(STANDARD))
    script = os.fork()
    if script == 0:
        asked.close()
        return json.loads(message), descriptors
    for descriptor in descriptors:
        os.close(descriptor)
    ended = os.pidfd_open(script)
    ready, _, _ = select.select([ended, asked.fileno()], [], [])
    if ended not in ready:
        os.kill(script, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(script, 0)[1])
    if ended in ready:
        asked.send(str(status).encode())
    os._exit(0)


def run(request: dict[str, Any], descriptors: list[int]) -> None:
    """As the interpreter would."""
    for descriptor, standard in zip(descriptors, STANDARD, strict=True):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = request["arguments"]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


def main() -> None:
    if not sys.argv[1:]:
        run(*serve())
        return
    status = ask(sys.argv[1:])
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
