"""A throw-away virtual machine with RDMA devices (Soft-RoCE), for machines that have none.

A tool of the repository, not installed with rdmacoll; it needs nothing but Python's library, QEMU
and what .ci/system-packages-rdma lists. docs/SOFTROCE.md says how to use it.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build/guest"


class GuestError(Exception):
    """No guest, or one that failed as a machine; what its command did is its exit status."""
