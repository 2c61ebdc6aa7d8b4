"""An agent that cannot go on ends its ranks first: whoever reads what it says may be gone.

Floor: tests.
"""

import os
import sys

import pytest
from rdmacoll.launcher.agent import main
from rdmacoll.launcher.meet.joining import CannotJoin


@pytest.mark.parametrize("error", [CannotJoin("no"), BlockingIOError(), ValueError("ours")])
def test_the_ranks_end_before_anything_is_said(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    done: list[str] = []

    def serve(*_: object) -> int:
        raise error

    monkeypatch.setattr(main, "job_key", lambda _: None)
    monkeypatch.setattr(main, "join", lambda *_: (None, None))
    monkeypatch.setattr(main, "_serve", serve)
    monkeypatch.setattr(main, "kill_descendants", lambda: done.append("kill"))
    monkeypatch.setattr(main, "_say", lambda _: done.append("say"))
    monkeypatch.setattr(sys, "excepthook", lambda *_: done.append("say"))
    monkeypatch.setattr(sys, "argv", ["agent", "one,two", "run", "1", "star"])
    assert main._run() == 1
    assert done == ["kill", "say"]


def test_nobody_need_read_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as pipe:
        monkeypatch.setattr(sys, "stderr", pipe)
        main._say("all is lost")
        with pytest.raises(BrokenPipeError):  # the text is still there
            pipe.close()
