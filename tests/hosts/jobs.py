"""Jobs of rdmarun over several hosts, that a test talks with while they run.

Floor: tests.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts.processes import processes_in
from hosts.stand import Host

RDMARUN = [sys.executable, "-m", "rdmacoll.launcher", "--no-tag-output"]
LIMIT_S = 100.0  # ten times what is promised
# All ranks make a first group, and stay until a file says that it is enough.
GO_ON = """
import os, sys, time
sys.path.insert(0, os.path.dirname(__file__))
from client import exchange
rank, number = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
if number == "0":
    exchange(b"nonce"), exchange(b"card")
print("up", rank, "of start", number, os.environ.get("RDMACOLL_ELASTIC"), flush=True)
while not os.path.exists(os.path.dirname(__file__) + "/enough"):
    time.sleep(0.05)
print("went on", rank, flush=True)
"""


class Job:
    """A job of rdmarun, started on a host; all that it has said, as it comes."""

    def __init__(
        self, host: Host, folder: Path, text: str, *options: str, env: dict[str, str] | None = None
    ) -> None:
        script = folder / "script.py"
        script.write_text(text)
        command = [*RDMARUN, *options, str(script)]
        self.process = host.start(
            *command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.said = ""

        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until it has said the text so many times."""
        deadline = time.monotonic() + LIMIT_S
        while self.said.count(text) < times:
            is_late = time.monotonic() > deadline or self.process.poll() is not None
            assert not is_late, f"it has not said {text!r} {times} times:\n{self.said}"
            time.sleep(0.02)

    def end(self) -> int:
        try:
            self.process.wait(LIMIT_S)
            self._reader.join(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"it does not end; it said:\n{self.said}")
        return self.process.returncode


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def left_on(host: Host) -> list[str]:
    found = []
    for pid in processes_in(host.keeper.network):
        if pid != host.keeper.holder:
            found.append(f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()!r}")
    return found


def assert_nothing_left(*hosts: Host) -> None:
    wait_for(lambda: not any(map(left_on, hosts)), f"the end of {[left_on(one) for one in hosts]}")
