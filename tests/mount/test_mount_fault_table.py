"""What a program does in the folder, and who is killed or stopped meanwhile: all of one with all of
the other at night, else another few each day. It goes on, or ends with an error at once; what was
closed is whole.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import loops
import pytest
from by_hand import Process
from job_runner import wait_for
from mounted_job import Mounted
from test_mount_faults import listed

MORE = 5  # loops, before and after a fault
STOPPED_S = 4.0  # longer than others wait for a server
SHORT = 3  # of all cases, each day


class Loop:
    def __init__(self, job: Mounted, what: str) -> None:
        self._said = job.jobs.folder / "said"
        command = [sys.executable, loops.__file__, what, str(job.folder), str(self._said)]
        self.process = Process(job.jobs, "loop", command)

    def count(self) -> int:
        return int(self._said.read_text()) if self._said.exists() else 0

    def wait_for_more(self) -> None:
        wanted = self.count() + MORE
        ended = self.process.process.poll
        wait_for(lambda: self.count() >= wanted or ended() is not None, "more loops")
        assert ended() is None, self.process.said()


def goes_on(job: Mounted, loop: Loop) -> None:
    loop.wait_for_more()
    loop.process.process.kill()
    loop.process.process.wait(60)


def server_is_killed(job: Mounted, loop: Loop) -> None:
    job.kill(1)
    goes_on(job, loop)


def server_is_stopped(job: Mounted, loop: Loop) -> None:
    job.servers[0].process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    goes_on(job, loop)
    job.servers[0].process.send_signal(signal.SIGCONT)


def daemon_is_killed(job: Mounted, loop: Loop) -> None:
    job.daemon.process.kill()
    status, said = loop.process.end()
    assert status == 0, said
    wait_for(lambda: not os.path.ismount(job.folder), "the end of the mount")
    assert listed(job.folder) == "[]\n"
    job.start(job.folder).wait_for_word("has the files")


def daemon_is_stopped(job: Mounted, loop: Loop) -> None:
    job.daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    job.daemon.process.send_signal(signal.SIGCONT)
    goes_on(job, loop)


Fault = Callable[[Mounted, Loop], None]
FAULTS: list[Fault] = [server_is_killed, server_is_stopped, daemon_is_killed, daemon_is_stopped]
CASES = [(what, fault) for what in loops.LOOPS for fault in FAULTS]


def todays() -> set[tuple[str, Fault]]:
    """Neighbours have the same loop, so each day has other loops and other faults."""
    first = int(os.environ.get("RDMACOLL_DAY", "0")) // 2
    return {CASES[(first + number * 11) % len(CASES)] for number in range(SHORT)}


def marks(case: tuple[str, Fault]) -> list[pytest.MarkDecorator]:
    return [] if case in todays() else [pytest.mark.nightly]


@pytest.mark.parametrize(
    ("what", "fault"),
    [pytest.param(*case, marks=marks(case), id=f"{case[0]}, {case[1].__name__}") for case in CASES],
)
def test_fault(own: Mounted, what: str, fault: Fault) -> None:
    kept = own.folder / "kept"
    kept.write_bytes(loops.KEPT)
    loop = Loop(own, what)
    loop.wait_for_more()
    fault(own, loop)
    assert kept.read_bytes() == loops.KEPT
    for file in Path(own.folder).glob("written *"):  # the loop was killed amid one of them
        assert file.read_bytes() in loops.KEPT
