"""What servers say that they do: status_cases.py, and a status as it is printed.

Floor: tests.
"""

from __future__ import annotations

import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from dataclasses import replace

import pytest
import status_cases
from case_job import Outcomes, cases_of
from job_runner import clean_jobs

from rdmacoll.base.listeners import Answer
from rdmacoll.servers import ask, command
from rdmacoll.servers.options import address
from rdmacoll.servers.status import JobStatus, ServerStatus, TableStatus
from rdmacoll.servers.text import lines


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, status_cases, workers=2, servers=2)


@pytest.mark.parametrize("case", cases_of(status_cases))
def test_status(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


FIRST = ServerStatus(
    number=0, state="serves", host="a", pid=7, began_s=0.0, buckets=1024, rows=5, pushes=12345,
    memory_bytes=3 << 20, memory_limit_bytes=4 << 30,
)  # fmt: skip
JOB = JobStatus(
    "a:1",
    2,
    [FIRST, replace(FIRST, number=1, state="silent", silent_s=12.3), ServerStatus(2)],
    [
        TableStatus(1, "weights", "dense", [2, 3], "none"),
        TableStatus(2, "long \x1b[2J", "rows", [64], "SGD(lr=0.1)", 5),
        TableStatus(3, "even", "dense", [2], "none", None, [7, 7]),
        TableStatus(4, "one", "dense", [2], "none", None, [120, 97, 120]),
        TableStatus(5, "all but one", "dense", [2], "none", None, [0, 0, 0, 0, 0, 9]),
    ],
)


def test_a_status_as_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert list(lines(JOB)) == [
        "3 servers of the job at a:1, all kept twice",
        "",
        "server  host  pid              started  buckets  alone  tables  rows  elements  pushes"
        "  pulls        memory",
        "     0  a       7  1970-01-01 00:00:00     1024      0       0     5         0   12345"
        "      0  3 MB of 4 GB",
        "     1  a       7  1970-01-01 00:00:00     1024      0       0     5         0   12345"
        "      0  3 MB of 4 GB",
        "     2  -       -                    -        -      -       -     -         -       -"
        "      -             -",
        "server 1 has given no sign of life for 12 s; above is what it said last",
        "server 2 has not started yet",
        "",
        "table         kind   shape  optimizer    rows  step  behind",
        "weights       dense  2 x 3  none            -     -  -",
        "long \\x1b[2J  rows   64     SGD(lr=0.1)     5     -  -",
        "even          dense  2      none            -     7  0",
        "one           dense  2      none            -   120  23: rank 1",
        "all but one   dense  2      none            -     9  9: ranks 0, 1, 2, 3, ...",
    ]


def test_a_status_survives_its_journey() -> None:
    assert JobStatus.from_text(JOB.to_text()) == JOB


@pytest.mark.parametrize("text", ["", "{}", "[]", "[" * 100_000, '{"servers": [{"x": 1}]}'])
def test_an_answer_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    answers = [Answer(3, text, ""), Answer(4, JOB.to_text(), ""), Answer(5, JOB.to_text(), "")]
    monkeypatch.setattr(ask, "ask_listeners", lambda *_: answers)
    assert command.status_of_host(Namespace(timeout=1.0, json=False)) == 1
    said = capsys.readouterr()
    assert "rdmacoll ps status: the server with pid 3 answered" in said.err
    assert said.out.splitlines() == list(lines(JOB))


def test_no_server_on_this_host(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ask, "ask_listeners", lambda *_: [])
    assert command.status_of_host(Namespace(timeout=1.0, json=True)) == 1
    assert "no server was found on this host" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["a:1", "10.0.0.1:65535", "[::1]:29500"])
def test_addresses(text: str) -> None:
    assert str(address(text)) == text


@pytest.mark.parametrize("text", ["", "a", ":1", "a:", "a:-1", "a:1x", "a:١", "a:b:1", "[]:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is no HOST:PORT"):
        address(text)
