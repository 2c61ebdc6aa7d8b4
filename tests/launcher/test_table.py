"""The table of the agents: what an agent sees of the others, and that it does not wait for ever.

Floor: tests.
"""

from collections.abc import Sequence

import pytest
from rdmacoll.launcher.agent import table
from rdmacoll.launcher.agent.table import AgentsSilent, Record, Table
from rdmacoll.launcher.base.cause import Cause
from rdmacoll.launcher.base.comm import Alone, Gathering

MINE = Record(
    live=2,
    failures=1,
    missing=1,
    exchange=3,
    arrived=frozenset({0, 8}),
    payload_bytes=7,
    cause=Cause(),
)


class NeverComplete:
    def test(self) -> bytes | None:
        return None

    def wait(self) -> None: ...


class SilentComm(Alone):
    def begin_gathering(self, mine: bytes, _: Sequence[int]) -> Gathering:
        return NeverComplete()

    def duplicate(self) -> "SilentComm":
        return self


def test_a_record_comes_as_it_was_given() -> None:
    assert Table(Alone(), world=9).step(MINE) == [MINE]


def test_a_round_that_is_not_complete_is_waited_for() -> None:
    agents = Table(SilentComm(), world=9)
    assert agents.step(MINE) is None
    assert agents.step(MINE) is None


def test_silence_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "SILENCE_S", -1.0)
    with pytest.raises(AgentsSilent, match="not all agents of the job have answered"):
        Table(SilentComm(), world=9).step(MINE)
