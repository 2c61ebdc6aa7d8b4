"""Unmounts the folder when the process that serves it is gone, however it ends: a process of its
own, which waits for that. libfuse's helper for it (auto_unmount) looks once, and does nothing where
the kernel is about to end the connection still.

Floor: rdmacoll/mount. Thread: the main one of either process.
"""

import os
import subprocess
import sys
from pathlib import Path

COMM = "rdma-unmount"  # by which rdmarun knows it (launcher/base/processes.py)
END_S = 5.0


class Unmounter:
    """Started before there is a mount. Raises OSError where it cannot be."""

    def __init__(self, folder: str, name: str) -> None:
        """name: of the mount, as /proc/mounts has it first."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, folder, name],
            stdin=subprocess.PIPE,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
        )

    def close(self) -> None:
        """The folder is unmounted, or is to be."""
        self._process.communicate(timeout=END_S)


def main(folder: str, name: str) -> None:
    Path("/proc/self/comm").write_text(COMM)
    sys.stdin.buffer.read()  # its end is that of the process
    mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
    if any(line.startswith(f"{name} ") for line in mounts):
        os.execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
