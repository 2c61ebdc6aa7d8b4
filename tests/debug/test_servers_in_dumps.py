"""Servers of a job among those that `rdmacoll debug` asks: they are no ranks of it.

Floor: tests.
"""

import json

import pytest
from made_dumps import collective, dump_of, text_of

from rdmacoll.debug import other_hosts
from rdmacoll.debug.ask import Asked
from rdmacoll.debug.command import _absent

JOB = {"WORLD_SIZE": "2", "RDMACOLL_AGENT": "@agent", "MASTER_PORT": "1"}
# A server is rank 0 of a group of its own.
SERVER = Asked(1, {**JOB, "RDMACOLL_SERVER": "0"}, "", dump_of(0, 1), "")
RANK = Asked(2, {**JOB, "RANK": "1", "GROUP_WORLD_SIZE": "2"}, "", dump_of(1, 2), "")


def test_a_server_is_not_taken_for_a_rank_that_is_absent() -> None:
    said = list(_absent(SERVER.job, [SERVER, RANK]))
    assert said == ["rank 0 of this job: ended, or on a host that was not asked"]


def test_other_hosts_are_asked_also_where_a_server_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = json.dumps([[0, 3, text_of(0, 2, collective(1)), ""]])
    monkeypatch.setattr(other_hosts, "ask_dumps", lambda _: (0, [("a", ""), ("b", elsewhere)]))
    found = other_hosts.ask_elsewhere([SERVER, RANK])
    assert [one.environ["RANK"] for one in found.asked] == ["0"]
    assert not any(one.is_server for one in found.asked)
