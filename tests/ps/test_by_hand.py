"""`rdmacoll ps serve` and `rdmacoll ps status` at a Store of the test's own.

Floor: tests.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator

import pytest
import torch.distributed as dist
from by_hand import HOST, ByHand, StoreOfTest, free_port
from job_runner import Jobs


@pytest.fixture
def store() -> Iterator[StoreOfTest]:
    store = StoreOfTest()
    yield store
    store.close()


@pytest.fixture
def by_hand(jobs: Jobs, store: StoreOfTest) -> Iterator[ByHand]:
    yield ByHand(jobs, store.port)
    jobs.kill_all()


GIVEN = ["--number", "0", "--servers", "1"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--number", "2", "--servers", "2", "--store", "a:1"], "numbers are 0 to 1"),
        (["--number", "-1", "--servers", "2"], "'-1' is no number from 0 to 1023"),
        (["--number", "0", "--servers", "0"], "'0' is no number from 1 to 1024"),
        (["--number", "0", "--servers", "1025"], "'1025' is no number from 1 to 1024"),
        ([*GIVEN, "--store", "somewhere"], "'somewhere' is no HOST:PORT"),
        ([*GIVEN, "--store", "a:0"], "'a:0' is no HOST:PORT"),
        ([*GIVEN, "--store", "a:65536"], "'a:65536' is no HOST:PORT"),
        ([*GIVEN, "--store", "::1:29500"], "'::1:29500' is no HOST:PORT"),
        (GIVEN, "MASTER_ADDR='' and MASTER_PORT='' name no Store: give --store"),
        ([*GIVEN, "--store", "a:1", "--replicas", "3"], "invalid choice: 3"),
        ([*GIVEN, "--store", "a:1", "--memory", "0"], "a server needs memory"),
        ([*GIVEN, "--store", "a:1", "--memory", "8GB"], "'8GB' is not a size"),
        ([*GIVEN, "--store", "a:1", "--timeout", "0"], "'0' is no number of seconds"),
        ([*GIVEN, "--store", "127.0.0.1:1", "--timeout", "0.5"], "no Store has answered at 127."),
        ([*GIVEN, "--store", "[::1]:1", "--timeout", "0.5"], "no Store has answered at [::1]:1"),
    ],
)
def test_wrong_options(jobs: Jobs, options: list[str], says: str) -> None:
    server = ByHand(jobs, 0).rdmacoll("ps", "serve", *options, MASTER_ADDR="", MASTER_PORT="")
    status, said = server.end()
    assert status == 2 and says in said and "Traceback" not in said, said


def test_servers_that_do_not_agree(by_hand: ByHand) -> None:
    by_hand.serving(0, 2)
    for server, says in (
        (by_hand.start(1, 3), "--servers 3: the first server of this job has said 2"),
        (by_hand.start(1, 2, "--replicas", "1"), "--replicas 1: the first server of this job has"),
        (by_hand.start(1, 2, "--rdzv-id", "another"), "nobody of this job has signed"),
    ):
        status, said = server.end()
        assert status == 1 and says in said and "Traceback" not in said, said


def test_a_second_server_of_a_number(by_hand: ByHand) -> None:
    first = by_hand.serving(0, 1)
    status, said = by_hand.start(0, 1).end()
    assert status == 1 and f"the job has a server 0, which runs (pid {first.pid} on " in said, said
    assert first.process.poll() is None


@pytest.mark.nightly
def test_one_that_has_taken_the_place_of_a_stopped_one(by_hand: ByHand) -> None:
    """The one that was stopped ends when it goes on."""
    first = by_hand.serving(0, 1)
    os.kill(first.pid, signal.SIGSTOP)
    second = by_hand.serving(0, 1)
    os.kill(first.pid, signal.SIGCONT)
    status, said = first.end()
    assert status == 1, said
    assert "server 0 ends: another process is server 0 of this job now" in said
    assert second.process.poll() is None


@pytest.mark.parametrize(
    "sig", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)]
)
def test_signals(by_hand: ByHand, sig: signal.Signals) -> None:
    server = by_hand.serving(0, 1)
    server.process.send_signal(sig)
    status, said = server.end()
    assert status == 0 and f"server 0 ends: {sig.name}\n" in said, said
    assert "Traceback" not in said
    by_hand.serving(0, 1)  # at once, as that one has said that it has ended


def test_the_store_is_gone(by_hand: ByHand, store: StoreOfTest) -> None:
    server = by_hand.serving(0, 1)
    store.close()
    status, said = server.end()
    assert status == 0
    # Nothing of what cannot be asked any more: so ends each job.
    lines = said.splitlines()
    assert len(lines) == 2 and "server 0 of 1 serves" in lines[0], said
    assert "server 0 ends: the job's Store is gone" in lines[1], said


@pytest.mark.nightly
def test_somebody_else_listens_there(jobs: Jobs) -> None:
    with socket.socket() as mute:
        mute.bind((HOST, 0))
        mute.listen()
        by_hand = ByHand(jobs, mute.getsockname()[1])
        asked = by_hand.rdmacoll("ps", "status", "--store", by_hand.store, "--timeout", "1")
        status, said = asked.end()
    assert status == 1 and "has not answered as a Store in 1 s" in said, said


@pytest.mark.nightly
def test_the_store_comes_later(jobs: Jobs) -> None:
    by_hand = ByHand(jobs, free_port())
    server = by_hand.start(0, 1)
    server.wait_for_word(f"waiting for the Store at {by_hand.store}")
    later = dist.TCPStore(HOST, by_hand.port, is_master=True, wait_for_workers=False)
    server.wait_for_word("serves")
    server.process.terminate()
    assert server.end()[0] == 0
    del later


def test_status(by_hand: ByHand) -> None:
    first = by_hand.serving(0, 3, "--memory", "64M", "--replicas", "1")
    _, said = by_hand.rdmacoll("ps", "status").end()
    assert f"3 servers of the job at {by_hand.store}, all kept once" in said
    assert f"{first.pid}" in said and " of 64 MB" in said
    assert "server 1 has not started yet" in said and "server 2 has not started yet" in said
    assert "no worker has made a table yet" in said
    second = by_hand.serving(1, 3, "--replicas", "1")
    third = by_hand.serving(2, 3, "--replicas", "1")
    os.kill(second.pid, signal.SIGSTOP)
    third.process.terminate()
    assert third.end()[0] == 0
    first.wait_for_word("server 1 does not answer")
    for more in [], ["--store", by_hand.store]:
        asked = by_hand.rdmacoll("ps", "status", "--json", *more)
        status, said = asked.end()
        text, problems = said[: said.rindex("]") + 1], said[said.rindex("]") + 1 :]
        job = next(one for one in json.loads(text) if one["store"] == by_hand.store)
        states = [server["state"] for server in job["servers"]]
        assert states == ["serves", "silent", "ended"], said
        assert (job["store"], job["replicas"], job["tables"]) == (by_hand.store, 1, [])
        stopped = f"the server with pid {second.pid} did not answer (it is stopped)"
        assert (stopped in problems, status) == ((False, 0) if more else (True, 1)), said
    _, said = by_hand.rdmacoll("ps", "status").end()
    assert "server 1 has given no sign of life for" in said
    assert "server 2 has ended as it was told to" in said
    os.kill(second.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--store", "{store}"], "no server of this job has started yet"),
        (
            ["--store", "127.0.0.1:1", "--timeout", "1"],
            "status: no Store has answered at 127.0.0.1:1",
        ),
        (["--store", "x"], "'x' is no HOST:PORT"),
    ],
)
def test_there_is_nothing_to_show(by_hand: ByHand, options: list[str], says: str) -> None:
    filled = [option.replace("{store}", by_hand.store) for option in options]
    status, said = by_hand.rdmacoll("ps", "status", *filled).end()
    assert status in (1, 2) and says in said and "Traceback" not in said, said
