"""The key by which two guests let each other in: made for one run, and gone with it.

Floor: guest. Thread: any.
"""

import subprocess
from pathlib import Path

from guest import GuestError


def make(path: Path) -> None:
    """Writes `path` and `path`.pub, which `sshd` reads; GuestError if that cannot be done."""
    try:
        options = ["-q", "-t", "ed25519", "-N", "", "-C", "throw-away"]
        subprocess.run(["ssh-keygen", *options, "-f", path], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise GuestError(f"{error}: run .ci/system-packages-rdma") from error
