"""The links of software devices, taken down and brought up.

Floor: tests.
"""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 30


def wire_of(device: str) -> str | None:
    """The interface of a device that tests/guest/rxe has put on a wire of its own; else None."""
    attribute = Path(f"/sys/class/infiniband/{device}/ports/1/gid_attrs/ndevs/0")
    name = attribute.read_text().strip()
    return name if re.fullmatch(r"x\d+", name) else None


@contextmanager
def link_down(device: str) -> Iterator[None]:
    """And up again, with its addresses."""
    wire = wire_of(device)
    subprocess.run(["ip", "link", "set", str(wire), "down"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "set", str(wire), "up"], check=True)
        wait_until_active(device)


def wait_until_active(device: str) -> None:
    port = Path(f"/sys/class/infiniband/{device}/ports/1")
    end = time.monotonic() + LIMIT_S
    while "ACTIVE" not in (port / "state").read_text() or ":ffff:" not in gid(port):
        assert time.monotonic() < end, f"{device} is not active after {LIMIT_S} s"
        time.sleep(0.05)


def gid(port: Path) -> str:
    try:
        return (port / "gids/1").read_text()
    except OSError:  # not there at the moment
        return ""
