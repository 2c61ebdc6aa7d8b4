"""Guests: workers that are no ranks of the job, and come and go while it runs. guests.py is what
they run.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import socket
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from by_hand import HOST, ByHand, Process, StoreOfTest, free_port
from job_runner import Jobs, wait_for

PROGRAM = str(Path(__file__).with_name("guests.py"))


@pytest.fixture
def store() -> Iterator[StoreOfTest]:
    store = StoreOfTest()
    yield store
    store.close()


class Guests:
    """Starts them, and ranks; sees in files how far they are."""

    def __init__(self, jobs: Jobs, port: int) -> None:
        self._jobs, self._port = jobs, port
        self.by_hand = ByHand(jobs, port)
        self._started = 0

    def start(self, *args: str, **env: str) -> Process:
        self._started += 1
        command = [self._jobs.python, PROGRAM, *args]
        return Process(self._jobs, f"guest{self._started}", command, **env)

    def rank(self, number: int) -> Process:
        at = {"MASTER_ADDR": HOST, "MASTER_PORT": str(self._port)}
        return self.start("rank", str(number), **at)

    def guest(self, name: str, most: int = -1) -> Process:
        return self.start("pushes", self.by_hand.store, name, str(most))

    def acknowledged(self, name: str) -> int:
        file = self._jobs.folder / f"acknowledged.{name}"
        return int(file.read_text()) if file.exists() else 0

    def wait_for_more(self, name: str, more: int = 10) -> None:
        wanted = self.acknowledged(name) + more
        wait_for(lambda: self.acknowledged(name) >= wanted, f"pushes of {name}")

    def tell(self, word: str) -> None:
        (self._jobs.folder / word).touch()


@pytest.fixture
def guests(jobs: Jobs, store: StoreOfTest) -> Iterator[Guests]:
    yield Guests(jobs, store.port)
    jobs.kill_all()


def test_guests_that_come_and_go(guests: Guests) -> None:
    servers = [guests.by_hand.start(number, 2) for number in range(2)]
    ranks = [guests.rank(number) for number in range(2)]
    guests.wait_for_more("rank0")
    killed = guests.guest("killed")
    guests.wait_for_more("killed", 20)
    os.kill(killed.pid, signal.SIGKILL)
    killed.end()
    status, said = guests.guest("short", 15).end()
    assert status == 0 and "found" in said, said
    stays = guests.guest("stays")
    guests.wait_for_more("stays")
    guests.tell("stop")
    assert [rank.end()[0] for rank in ranks] == [0, 0]
    guests.wait_for_more("stays")  # the job goes on as long as its Store
    guests.tell("stop.stays")
    status, said = stays.end()
    assert status == 0, said
    exact = sum(
        guests.acknowledged(name) for name in ("rank0", "rank1", "killed", "short", "stays")
    )
    # The last push of the one that was killed is in a table once or not at all.
    for found in said.partition("found")[2].split():
        assert float(found) in (exact, exact + 1), said
    assert all(server.process.poll() is None for server in servers)


def test_a_guest_trains(guests: Guests) -> None:
    """Without ranks, too: all workers may be guests."""
    guests.by_hand.serving(0, 1)
    first = guests.start("trains", guests.by_hand.store).end()[1]
    begun = "begun [7.0, 7.0, 7.0] trained [2.0, 2.0, 2.0] [[-5.0, -5.0]]"
    assert begun in first, first
    for refusal in (
        "ValueError: mode=Sync() is for the ranks of a group, and this process is a guest of",
        "ValueError: pace=Stale(steps=1) is for the ranks of a group",
        "ValueError: alone=False is for the ranks of a group",
        "already; start another one",
    ):
        assert refusal in first, first
    second = guests.start("trains", guests.by_hand.store).end()[1]
    assert "begun [2.0, 2.0, 2.0] trained [-3.0, -3.0, -3.0] [[-10.0, -10.0]]" in second, second
    assert "FileExistsError" in second and "not refused" not in first + second


def test_there_is_no_such_job(guests: Guests, jobs: Jobs) -> None:
    at, timeout = guests.by_hand.store, "3"
    secret = jobs.folder / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    none_yet = guests.start("refused", timeout, at)
    with socket.socket() as mute:
        mute.bind((HOST, 0))
        mute.listen()
        mutes = f"{HOST}:{mute.getsockname()[1]}"
        checks = [
            (none_yet, "TimeoutError: no server of this job has started in time"),
            (
                guests.start("refused", timeout, f"{HOST}:1"),
                f"TimeoutError: no Store has answered at {HOST}:1 in 3 s",
            ),
            (guests.start("refused", timeout, mutes), "has not answered as a Store in"),
            (guests.start("refused", timeout, "here"), "ValueError: store: 'here' is no HOST:PORT"),
        ]
        for guest, says in checks:
            assert_refused(guest, says)
    guests.by_hand.serving(0, 1)
    other = f"RuntimeError: store={at!r}: the job there has another id or secret than this process"
    assert_refused(guests.start("refused", timeout, at, "another"), other)
    assert_refused(guests.start("refused", timeout, at, TORCHELASTIC_RUN_ID="another"), "another")
    assert_refused(guests.start("refused", timeout, at, RDMACOLL_SECRET_FILE=str(secret)), other)
    assert_refused(guests.start("refused", "20", at, "none"), "not refused")


def assert_refused(guest: Process, says: str) -> None:
    status, said = guest.end()
    assert status == 0 and says in said and "Traceback" not in said, said
    seconds = float(said.rpartition("after ")[2].split()[0])
    assert seconds < 20, said


RANK = """
    import os, pathlib, time
    import torch.distributed as dist
    from rdmacoll import ps

    dist.init_process_group("rdma")
    kv = ps.KV(timeout=30.0)
    try:
        ps.connect(store="127.0.0.1:1")
    except ValueError as error:
        print("refused:", error, flush=True)
    pathlib.Path("port").write_text(os.environ["MASTER_PORT"])
    until = time.monotonic() + 50
    while not pathlib.Path("stop").exists() and time.monotonic() < until:
        time.sleep(0.05)
    dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "has_file", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["", "secret file"]
)
def test_a_job_of_rdmarun(jobs: Jobs, has_file: bool) -> None:
    """Its secret is its agents', unless it is in a file."""
    env = {}
    if has_file:
        secret = jobs.folder / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        env["RDMACOLL_SECRET_FILE"] = str(secret)
    job = jobs.start("-np", "1", "--servers", "1", jobs.script(textwrap.dedent(RANK)), **env)
    port = jobs.folder / "port"
    wait_for(lambda: port.exists() and port.read_text() != "", "the rank")
    guests = Guests(jobs, int(port.read_text()))
    guest = guests.start("refused", "20", guests.by_hand.store, **env)
    assert_refused(guest, "not refused" if has_file else "without such a file takes no guests")
    guests.tell("stop")
    said = job.communicate(timeout=60)
    assert job.returncode == 0, said
    assert "refused: store='127.0.0.1:1': this process is of a job of rdmarun" in said[0]


@pytest.mark.nightly
def test_the_end_of_the_job(jobs: Jobs) -> None:
    """torchrun has the Store, so servers end with the ranks, and a guest gets an error."""
    guests = Guests(jobs, free_port())
    text = RANK.replace('write_text(os.environ["MASTER_PORT"])', 'write_text("")')
    ranks = guests.by_hand.torchrun(1, textwrap.dedent(text))
    server = guests.by_hand.start(0, 1)
    guest = guests.guest("stays")
    guests.wait_for_more("stays")
    guests.tell("stop")
    assert ranks.end()[0] == 0 and server.end()[0] == 0
    status, said = guest.end()
    assert status == 1 and f"the job's Store at {guests.by_hand.store} cannot be reached" in said
    assert said.count("Broken pipe") < 50, "it says it too often"
