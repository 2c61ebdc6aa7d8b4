"""What examples 11 and 12 do to a job's server, to show that it is not missed."""

import os
import signal
from pathlib import Path


def kill_a_server() -> str:
    """One of this job and this host."""
    ours = {f"MASTER_PORT={os.environ['MASTER_PORT']}".encode(), b"RDMACOLL_SERVER=0"}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if ours <= set(path.read_bytes().split(b"\0")):
                os.kill(int(path.parent.name), signal.SIGKILL)
                return "killed server 0"
        except OSError:  # another user's, or it has ended
            continue
    return "there is no server 0 on this host to be killed"
