"""What rdmarun does with the output of what it has started, before the agents are up; and signals
that come at any moment.

Floor: tests.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from job_runner import LIMIT_S, wait_for
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.base.job import PIECE_BYTES, Job
from rdmacoll.launcher.command.launch import Launch
from rdmacoll.launcher.command.starter import Command
from rdmacoll.launcher.keys.key import Key

KEY = Key(b"k" * 32, "run")


@pytest.fixture
def make_launch() -> Iterator[Callable[[], Launch]]:
    """Makes launches of a process that reads its input until it is killed."""
    made = []

    def make() -> Launch:
        job = Job([Host("localhost", 1)], ["x" * PIECE_BYTES], "/", {}, "run", LIMIT_S)
        up_by = time.monotonic() + LIMIT_S
        command = Command("cat", ["sh", "-c", "cat >/dev/null"], {})
        made.append(Launch(job, KEY, [command], up_by))
        return made[-1]

    yield make
    for launch in made:
        launch._kill()
        wait_for(launch._is_over, "the end of cat")
        launch._out.close()
        launch._err.close()


def test_what_is_printed_before_the_agents_are_up_is_passed_on_at_once(
    make_launch: Callable[[], Launch],
) -> None:
    """But for the lines of agent 0, which may come in pieces and behind the beginning of another's
    line. No more is held than may be of these."""
    launch = make_launch()
    lines = b"".join(b"%d of the login shell\n" % n for n in range(10_000))
    assert launch._take(lines) == lines
    assert launch._take(b"no end" * 100_000).startswith(b"no end" * 99_000)
    assert launch._take(b"\nmotd: " + KEY.ask_line[:30]).endswith(b"no end\n")
    assert launch._take(KEY.ask_line[30:] + b"more\n") == b"motd: more\n"
    assert launch._take(KEY.ask_line) == b"" and not launch._ready
    assert launch._take(KEY.ask_line + b"of a rank") == b"of a rank" and launch._ready


def signal_at_line(launch: Launch, moment: int) -> bool:
    """Runs the handler of a signal before this line of what answers agent 0, counted as they run.
    False if there are fewer lines."""
    left = moment

    def on_event(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != Launch.run.__code__.co_filename:
            return None
        left -= event == "line"
        if left == 0:
            sys.settrace(None)
            left = -1
            launch._on_signal(signal.SIGTERM, None)
            return None
        return on_event

    sys.settrace(on_event)
    try:
        launch._take(KEY.ask_line)
    finally:
        sys.settrace(None)
    return left < 0


def test_a_signal_at_any_moment_sets_the_deadline_of_the_end(
    make_launch: Callable[[], Launch],
) -> None:
    moment = 1
    while signal_at_line(launch := make_launch(), moment):
        assert launch._timeout_s() is not None, f"after a signal at line {moment}"
        moment += 1
    assert moment > 5
