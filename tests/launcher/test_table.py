"""The table of the agents: what an agent sees of the others, and of which start of the ranks.

Floor: tests.
"""

from dataclasses import replace

from rdmacoll.launcher.agent.table import Record, Table, pack
from rdmacoll.launcher.base.cause import Cause
from rdmacoll.launcher.base.comm import Alone
from rdmacoll.launcher.base.hosts import MOST_RANKS

MINE = Record(
    start=1,
    live=2,
    failures=1,
    missing=1,
    exchange=3,
    arrived=frozenset({0, 8}),
    payload_bytes=7,
    cause=Cause(),
)


def test_a_record_comes_as_it_was_given() -> None:
    assert Table(Alone()).step(MINE) == [MINE]


def test_a_record_is_no_longer_in_a_larger_job() -> None:
    last = replace(MINE, arrived=frozenset({MOST_RANKS - 1, MOST_RANKS - 8}))
    assert Table(Alone()).step(last) == [last]
    assert len(pack(last)) == len(pack(MINE))


def test_a_record_that_has_not_changed_makes_no_table() -> None:
    agents = Table(Alone())
    assert agents.step(MINE) == [MINE]
    assert agents.step(MINE) is None
    later = replace(MINE, live=1)
    assert agents.step(later) == [later]


def test_records_of_an_earlier_start_are_passed_over() -> None:
    comm = Alone()
    comm.put(pack(replace(MINE, start=0)))
    assert Table(comm).step(MINE) == [MINE]
