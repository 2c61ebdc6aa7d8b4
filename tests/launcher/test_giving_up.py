"""An agent that cannot go on ends its ranks first: whoever reads what it says may be gone.

Floor: tests.
"""

import os
import sys
from types import SimpleNamespace

import pytest
from rdmacoll.launcher import agent
from rdmacoll.launcher.agent import main
from rdmacoll.launcher.agent.table import AgentsSilent


class Aborted(BaseException):
    """In place of the end of the process."""


@pytest.mark.parametrize("error", [AgentsSilent("silent"), BlockingIOError(), ValueError("ours")])
def test_the_ranks_end_before_anything_is_said(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    done: list[str] = []

    def serve(*_: object) -> int:
        raise error

    def abort() -> None:
        done.append("abort")
        raise Aborted

    over_mpi = SimpleNamespace(
        OverMpi=lambda: SimpleNamespace(size=2, rank=1), unlink_segments=lambda: None, abort=abort
    )
    monkeypatch.setitem(sys.modules, f"{agent.__name__}.over_mpi", over_mpi)
    monkeypatch.setattr(agent, "over_mpi", over_mpi, raising=False)
    monkeypatch.setattr(main, "lacks_shm_space", lambda _: "")
    monkeypatch.setattr(main, "_job_key", lambda *_: None)
    monkeypatch.setattr(main, "_serve", serve)
    monkeypatch.setattr(main, "kill_descendants", lambda: done.append("kill"))
    monkeypatch.setattr(main, "_say", lambda _: done.append("say"))
    monkeypatch.setattr(sys, "excepthook", lambda *_: done.append("say"))
    monkeypatch.setattr(sys, "argv", ["agent", "one,two", "run"])
    with pytest.raises(Aborted):
        main._run()
    assert done == ["kill", "say", "abort"]


def test_nobody_need_read_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as pipe:
        monkeypatch.setattr(sys, "stderr", pipe)
        main._say("all is lost")
        with pytest.raises(BrokenPipeError):  # the text is still there
            pipe.close()
