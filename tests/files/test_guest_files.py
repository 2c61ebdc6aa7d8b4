"""fsspec in processes that are no ranks, and name the job's Store: guest_files.py is what they run.

Floor: tests.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from by_hand import HOST, ByHand, Process, StoreOfTest
from job_runner import Jobs, clean_jobs, wait_for

PROGRAM = str(Path(__file__).with_name("guest_files.py"))
BUCKETS = 1024


class Guests:
    """A job of two servers, and who comes to it."""

    def __init__(self, jobs: Jobs, store: StoreOfTest) -> None:
        self._jobs, self._store = jobs, store
        self.by_hand = ByHand(jobs, store.port)
        self.servers = [self.by_hand.start(number, 2) for number in range(2)]
        self._started = 0

    def start(self, role: str, *args: str) -> Process:
        self._started += 1
        command = [self._jobs.python, PROGRAM, role, self.by_hand.store, *args]
        return Process(self._jobs, f"guest{self._started}", command)

    def tell(self, word: str) -> None:
        (self._jobs.folder / word).touch()

    def wait_for_word(self, guest: Process, word: str) -> None:
        file = self._jobs.folder / word
        wait_for(lambda: file.exists() or guest.process.poll() is not None, word)
        assert file.exists(), guest.said()

    def count(self) -> int:
        """What the one that reads has done by now."""
        file = self._jobs.folder / "count"
        return int(file.read_text()) if file.exists() else 0

    def wait_for_more(self, reader: Process, more: int = 10) -> None:
        wanted = self.count() + more
        wait_for(lambda: self.count() >= wanted or reader.process.poll() is not None, "more reads")
        assert reader.process.poll() is None, reader.said()

    def wait_until_kept_twice(self, serving: set[int]) -> None:
        """By these servers, as the one that reads has heard of them last."""

        def is_kept() -> bool:
            file = self._jobs.folder / "servers"
            all_of_them: list[dict[str, Any]] = json.loads(file.read_text())
            servers = [one for one in all_of_them if one["number"] in serving]
            has_all = sum(one["buckets"] for one in servers) == BUCKETS
            have_some = len(servers) == len(serving) and all(one["buckets"] for one in servers)
            return has_all and have_some and not any(one["alone"] for one in servers)

        wait_for(is_kept, f"all to be kept twice by {serving}")

    def end_job(self) -> None:
        """Its Store is gone, and so its servers end."""
        self._store.close()
        for server in self.servers:
            status, said = server.end()
            assert status == 0, said


@contextmanager
def job_with_guests(jobs: Jobs) -> Iterator[Guests]:
    store = StoreOfTest()
    yield Guests(jobs, store)
    jobs.kill_all()
    store.close()


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    """Of a job that tests share."""
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs, job_with_guests(jobs) as guests:
        yield guests


@pytest.fixture
def own(jobs: Jobs) -> Iterator[Guests]:
    """Of one that a test may break."""
    with job_with_guests(jobs) as guests:
        yield guests


def ended_well(guest: Process) -> str:
    status, said = guest.end()
    assert status == 0 and "Traceback" not in said, said
    return said


def test_they_share_files(guests: Guests) -> None:
    one = ended_well(guests.start("uses", "one"))
    assert "by/one/bytes by/one/moved\n" in one
    two = ended_well(guests.start("uses", "two"))
    assert "by/one/bytes by/one/moved by/two/bytes by/two/moved\n" in two


def test_there_is_no_such_job(guests: Guests) -> None:
    at = guests.by_hand.store
    with socket.socket() as mute:
        mute.bind((HOST, 0))
        mute.listen()
        mutes = f"{HOST}:{mute.getsockname()[1]}"
        said = ended_well(guests.start("refused", f"{HOST}:1", mutes, "here"))
    *refused, last = [line for line in said.splitlines() if "Error: " in line]
    wanted = [
        f"TimeoutError: no Store has answered at {HOST}:1 in 3 s",
        "TimeoutError: what listens at the address of the job's Store has not answered as a Store",
        "ValueError: store: 'here' is no HOST:PORT",
        f"RuntimeError: store={at!r}: the job there has another id or secret than this process",
    ]
    assert len(refused) == len(wanted), said
    for line, begin in zip(refused, wanted, strict=True):
        assert line.startswith(begin), said
    assert last.startswith("FileNotFoundError") and "not refused" not in said, said


def test_the_job_ends_while_it_has_files_open(own: Guests) -> None:
    guest = own.start("outlives")
    own.wait_for_word(guest, "open")
    own.end_job()
    own.tell("ended")
    said = ended_well(guest)
    assert "came to its end" in said and "not refused" not in said, said
    lines = [line for line in said.splitlines() if "Error: " in line]
    assert len(lines) == 4 and all("the job has ended most likely" in line for line in lines), said
    assert {line.partition(":")[0] for line in lines} == {"OSError", "TimeoutError"}, said


def test_servers_are_replaced_while_it_reads(own: Guests) -> None:
    """Two more come, and then the first ones are lost, one after the other."""
    reader = own.start("reads")
    own.wait_for_more(reader)
    for _ in range(2):
        joined = own.by_hand.rdmacoll("ps", "serve", "--join", "--store", own.by_hand.store)
        joined.wait_for_word("serves")
    own.wait_until_kept_twice({0, 1, 2, 3})
    os.kill(own.servers[0].pid, signal.SIGKILL)
    own.wait_until_kept_twice({1, 2, 3})
    os.kill(own.servers[1].pid, signal.SIGKILL)
    own.wait_until_kept_twice({2, 3})
    own.wait_for_more(reader)
    own.tell("enough")
    assert "all is as it was" in ended_well(reader)
